// Command release writes the files of a release: an archive and a list of modules (SBOM) for each platform, and the checksums of all. Two
// runs on one commit, with one version of Go, write the same bytes.
//
//	go run ./cmd/release VERSION FOLDER
//
// Or it compiles the binary for each platform, and writes nothing: a fault of one platform shows before the tag.
//
//	go run ./cmd/release compile
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// platform is an operating system and an architecture, in Go's names.
type platform struct{ os, arch string }

var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 1 && args[0] == "compile" {
		return compile(func(on platform) error { return build("v0.0.0", os.DevNull, on) })
	}
	if len(args) != 2 {
		return errors.New("usage: release VERSION FOLDER, or: release compile")
	}
	version, folder := args[0], args[1]
	if !semver.IsValid(version) || semver.Canonical(version) != version {
		return fmt.Errorf("%q is not a version; write v0.1.0", version)
	}
	if err := checkNamed(".", version); err != nil {
		return err
	}
	committed, err := commitTime()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, on := range platforms {
		if err := makeArchive(folder, version, on, committed); err != nil {
			return fmt.Errorf("%s/%s: %w", on.os, on.arch, err)
		}
	}
	return writeChecksums(folder)
}

var (
	required = regexp.MustCompile(`(?m)^require github\.com/slipway-platform/slipway (v\S+)$`)
	entries  = regexp.MustCompile(`(?m)^## (.+)$`)
)

// checkNamed returns an error unless a checkout names the version of the release: in the template, so that a repository made of it has this
// version, and as the newest entry of the changelog, which is in each archive.
func checkNamed(checkout, version string) error {
	var errs []error
	for _, one := range []struct {
		file   string
		names  *regexp.Regexp
		remedy string
	}{
		{"templates/cluster/go.mod", required, "write %s into cmd/newcluster/cluster/go.mod.txt, and run: make golden"},
		{"CHANGELOG.md", entries, "write the heading ## %s above what the release changes"},
	} {
		text, err := os.ReadFile(filepath.Join(checkout, filepath.FromSlash(one.file)))
		if err != nil {
			return err
		}
		named := "nothing"
		if found := one.names.FindSubmatch(text); found != nil {
			named = string(found[1])
		}
		if named != version {
			errs = append(errs, fmt.Errorf("%s: names %s, and the release is %s; "+one.remedy, one.file, named, version, version))
		}
	}
	return errors.Join(errs...)
}

// commitTime returns the time of the commit, which all files of the release get. Changes that are not committed would be in no tag.
func commitTime() (time.Time, error) {
	changes, err := output("git", "status", "--porcelain")
	if err != nil {
		return time.Time{}, err
	}
	if changes != "" {
		return time.Time{}, fmt.Errorf("the working tree has changes; commit them first:\n%s", changes)
	}
	text, err := output("git", "log", "-1", "--format=%ct")
	if err != nil {
		return time.Time{}, err
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(seconds, 0).UTC(), err
}

func output(name string, args ...string) (string, error) {
	command := exec.Command(name, args...) //nolint:noctx // the commands are those of this file
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// compile builds for each platform, and names those for which that fails.
func compile(build func(on platform) error) error {
	var errs []error
	for _, on := range platforms {
		if err := build(on); err != nil {
			errs = append(errs, fmt.Errorf("%s/%s: %w", on.os, on.arch, err))
		}
	}
	return errors.Join(errs...)
}

// build builds the binary for a platform.
func build(version, binary string, on platform) error {
	command := exec.Command("go", buildArgs(version, binary)...) //nolint:noctx // the commands are those of this file
	command.Env = append(os.Environ(), buildEnv(on)...)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	fmt.Fprintf(os.Stderr, "builds %s for %s/%s\n", version, on.os, on.arch)
	return command.Run()
}

// makeArchive builds the binary for a platform, and writes its archive and its SBOM.
func makeArchive(folder, version string, on platform, committed time.Time) error {
	scratch, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	binary := filepath.Join(scratch, "slipway")
	if err := build(version, binary, on); err != nil {
		return err
	}
	modules, err := sbomOf(binary, version, committed)
	if err != nil {
		return err
	}
	name := filepath.Join(folder, fmt.Sprintf("slipway_%s_%s_%s", version, on.os, on.arch))
	if err := os.WriteFile(name+".sbom.json", modules, 0o644); err != nil {
		return err
	}
	return writeArchive(name+".tar.gz", committed, []entry{{"slipway", binary, 0o755}, {"CHANGELOG.md", "CHANGELOG.md", 0o644}})
}

// buildArgs are the arguments of go for a released binary. Nothing in the binary depends on the folder in which it is built.
func buildArgs(version, binary string) []string {
	return []string{
		"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X github.com/slipway-platform/slipway/cmd/command.released=" + version,
		"-o", binary, ".",
	}
}

// buildEnv replaces what of the caller's environment would change the binary.
func buildEnv(on platform) []string {
	return []string{
		"GOOS=" + on.os, "GOARCH=" + on.arch, "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off",
	}
}
