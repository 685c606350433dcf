package versions

import (
	"fmt"
	"strings"

	"golang.org/x/mod/semver"
)

// Refused is what the installer of a version writes, and its exit code, if that version may not be installed over the one of the host; nil
// and 0 if it may.
func Refused(version, host string) (output []string, code int) {
	err := hostError(version, host)
	switch {
	case err == nil:
		return nil, 0
	case Since(version, "v1.14"):
		return []string{"pre-flight checks failed: " + err.Error()}, exitEnvironment
	}
	return []string{"Error: pre-flight checks failed: " + err.Error(), installerUsage, "pre-flight checks failed: " + err.Error()}, exitUnknown
}

// hostError is why a version of Talos may not be installed over another one, in the words of its installer.
func hostError(version, host string) error {
	of, known := minors[semver.MajorMinor(version)]
	bare := func(version string) string { return strings.TrimPrefix(version, "v") }
	switch {
	case !known:
		return fmt.Errorf("upgrades to version %s are not supported", bare(version))
	case semver.Compare(host, of.hosts[0]) < 0:
		return fmt.Errorf("host version %s is too old to upgrade to Talos %s", bare(host), bare(version))
	case semver.Compare(host, of.hosts[1]) >= 0:
		return fmt.Errorf("host version %s is too new to downgrade to Talos %s", bare(host), bare(version))
	}
	return nil
}

// Exit codes of installers. Before 1.14 there is one for all errors.
const (
	exitUnknown     = 1
	exitEnvironment = 4
)

// installerUsage is what an installer before 1.14 writes after an error, whatever the error is.
const installerUsage = `Usage:
  installer install [flags]

Flags:
  -h, --help   help for install

Global Flags:
      --arch string                     The target architecture (default "amd64")
      --board string                    The value of talos.board (default "none")
      --config string                   The value of talos.config
      --disk string                     The path to the disk to install to
      --extra-kernel-arg stringArray    Extra argument to pass to the kernel
      --force                           Indicates that the install should forcefully format the partition
      --meta key=value                  A key/value pair for META
      --platform string                 The value of talos.platform
      --upgrade                         Indicates that the install is being performed by an upgrade
      --zero                            Indicates that the install should write zeros to the disk before installing
`
