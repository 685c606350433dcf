package tree

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"gopkg.in/yaml.v3"
)

// WrittenFile says which manifests `slipway manifests` has written into a repository, and by which version. It is in a folder above the
// cluster's, where Flux does not read it.
const WrittenFile = "kubernetes/slipway-manifests.yaml"

// Written is what the file says.
type Written struct {
	Version string            `yaml:"version,omitempty"` // of the program that wrote the manifests; "" if that was no release
	Files   map[string]string `yaml:"files"`             // SHA-256 of the text of each, by its path
}

// ReadWritten returns what the file says; nothing if there is none.
func ReadWritten(repository fs.FS) (written Written, err error) {
	text, err := fs.ReadFile(repository, WrittenFile)
	if errors.Is(err, fs.ErrNotExist) {
		return written, nil
	}
	if err == nil {
		err = yaml.Unmarshal(text, &written)
	}
	if err == nil && written.Version != "" && Release(written.Version) == "" {
		err = fmt.Errorf("version: %s is no release", written.Version)
	}
	if err != nil {
		return written, fmt.Errorf("%s: %w; write it anew with: slipway manifests", WrittenFile, err)
	}
	return written, nil
}

// Release returns a version of Slipway if it is that of a release, and "" for a build of other sources.
func Release(version string) string {
	if !semver.IsValid(version) || semver.Build(version) != "" || module.IsPseudoVersion(version) {
		return ""
	}
	return version
}

// CheckVersion returns an error if a newer program than this one has written the manifests of a repository. The last number of a version
// does not matter: such a release asks for no change of anything else. A build of other sources is taken for new enough.
func CheckVersion(repository fs.FS, program string) error {
	written, err := ReadWritten(repository)
	if err != nil || Release(program) == "" || semver.Compare(semver.MajorMinor(written.Version), semver.MajorMinor(program)) <= 0 {
		return err
	}
	return fmt.Errorf("%s: the manifests are those of slipway %s, and this is %s; install %[2]s, also in go.mod, "+
		"or go back to the manifests of this version with: slipway manifests", WrittenFile, written.Version, program)
}
