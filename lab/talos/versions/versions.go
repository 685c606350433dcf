// Package versions holds what differs between the versions of Talos that a simulated machine may run.
package versions

import (
	"fmt"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"golang.org/x/mod/semver"
)

// minor is what differs between the minor versions of Talos that a machine may run: what each one's machinery says in the packages
// compatibility and constants, of the newest patch release that was read (1.12.7, 1.13.9, 1.14.1).
type minor struct {
	hosts      [2]string // versions that it may be installed over: from the first one on, before the second one
	kubernetes [2]string // the oldest and the newest minor version of Kubernetes
	etcd       string
}

var minors = map[string]minor{
	"v1.11": {[2]string{"v1.9.0", "v1.13.0"}, [2]string{"v1.29", "v1.34"}, "3.6.5"},
	"v1.12": {[2]string{"v1.10.0", "v1.14.0"}, [2]string{"v1.30", "v1.35"}, "3.6.9"},
	"v1.13": {[2]string{"v1.11.0", "v1.15.0"}, [2]string{"v1.31", "v1.36"}, "3.6.12"},
	"v1.14": {[2]string{"v1.12.0", "v1.16.0"}, [2]string{"v1.32", "v1.37"}, "3.7.1"},
}

// Since tells whether a version of Talos is of a minor version, such as v1.13, or later.
func Since(version, minor string) bool { return semver.Compare(semver.MajorMinor(version), minor) >= 0 }

// Etcd is the version of etcd that comes with a version of Talos.
func Etcd(version string) string { return minors[semver.MajorMinor(version)].etcd }

// KubernetesError is why a version of Talos does not take an image of Kubernetes.
func KubernetesError(version, image string) error {
	kubernetes, err := v1alpha1.KubernetesVersionFromImageRef(image)
	if err != nil {
		return fmt.Errorf("failed to parse Kubernetes version from image reference %q: %w", image, err)
	}
	talos, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: version})
	if err != nil {
		return fmt.Errorf("failed to parse Talos version: %w", err)
	}
	of, known := minors[semver.MajorMinor(version)]
	its := semver.MajorMinor("v" + kubernetes.String())
	switch {
	case !known:
		return fmt.Errorf("compatibility with version %s is not supported", talos)
	case semver.Compare(its, of.kubernetes[0]) < 0:
		return fmt.Errorf("version of Kubernetes %s is too old to be used with Talos %s", kubernetes, talos)
	case semver.Compare(its, of.kubernetes[1]) > 0:
		return fmt.Errorf("version of Kubernetes %s is too new to be used with Talos %s", kubernetes, talos)
	}
	return nil
}

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
