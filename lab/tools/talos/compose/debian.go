package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// run runs a command and returns its output. Its error contains what the command printed.
func run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, strings.TrimSpace(problems.String()+out.String()))
	}
	return out.String(), nil
}

// closure downloads packages and all that they depend on, as on a machine without any package, and returns the paths of the files.
func (c *composition) closure(ctx context.Context, name string, packages []string) ([]string, error) {
	status := c.temporary("status")
	if err := os.WriteFile(status, nil, 0o644); err != nil {
		return nil, err
	}
	install := func(archives string, more ...string) (string, error) {
		args := append([]string{
			"-o", "Dir::State::status=" + status, "-o", "Dir::Cache::archives=" + archives, "-o", "APT::Sandbox::User=root",
			"-o", "Debug::NoLocking=true", "-y", "--no-install-recommends", "--download-only",
		}, more...)
		if err := os.MkdirAll(filepath.Join(archives, "partial"), 0o755); err != nil {
			return "", err
		}
		return run(ctx, "apt-get", append(append(args, "install"), packages...)...)
	}
	// apt-get prints only what is not downloaded yet, so it is asked about an empty folder.
	uris, err := install(c.temporary("empty")+"/", "--print-uris")
	if err != nil {
		return nil, fmt.Errorf("packages: %w", err)
	}
	archives := filepath.Join(c.cache, "talos", "debian", name) + "/"
	if _, err := install(archives); err != nil {
		return nil, fmt.Errorf("packages: %w", err)
	}
	return inFolder(archives, debNames(uris)), nil
}

// debNames are the names of the files in the output of apt-get --print-uris, sorted.
func debNames(uris string) []string {
	var names []string
	for line := range strings.Lines(uris) {
		if fields := strings.Fields(line); len(fields) >= 3 && strings.HasPrefix(line, "'") {
			names = append(names, fields[1])
		}
	}
	slices.Sort(names)
	return names
}

// linux is Debian's kernel.
type linux struct {
	debs    []string // paths of its packages: the list of what is built in, the kernel, its modules
	release string   // as uname -r prints it
}

// kernel downloads the newest kernel of kernelSuite.
func (c *composition) kernel(ctx context.Context) (linux, error) {
	apt, err := c.suite(ctx, kernelSuite)
	if err != nil {
		return linux{}, err
	}
	depends, err := run(ctx, "apt-cache", append(apt, "depends", "--important", kernelPackage)...)
	if err != nil {
		return linux{}, err
	}
	release := kernelRelease(depends)
	if release == "" {
		return linux{}, fmt.Errorf("%s of %s depends on no kernel", kernelPackage, kernelSuite)
	}
	packages := []string{"linux-base-" + release, "linux-binary-" + release, "linux-modules-" + release}
	uris, err := run(ctx, "apt-get", slices.Concat(apt, []string{"download", "--print-uris"}, packages)...)
	if err != nil {
		return linux{}, err
	}
	names := debNames(uris)
	if len(names) != len(packages) {
		return linux{}, fmt.Errorf("apt-get would download %q for %q", names, packages)
	}
	kernel := linux{inFolder(filepath.Join(c.cache, "talos", "debian", "kernel"), names), release}
	if slices.ContainsFunc(kernel.debs, missing) {
		cmd := exec.CommandContext(ctx, "apt-get", slices.Concat(apt, []string{"download"}, packages)...)
		cmd.Dir = filepath.Dir(kernel.debs[0])
		if err := os.MkdirAll(cmd.Dir, 0o755); err != nil {
			return linux{}, err
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return linux{}, fmt.Errorf("apt-get download: %w\n%s", err, out)
		}
	}
	return kernel, nil
}

// suite reads the list of a suite's packages from the mirror of Debian 12 that this computer uses. It returns the arguments with which
// apt-get and apt-cache know these packages, and no others. The computer's own lists stay as they are.
func (c *composition) suite(ctx context.Context, suite string) ([]string, error) {
	mirrors, err := run(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI)", "Identifier: Packages", "Codename: bookworm")
	if err != nil {
		return nil, err
	}
	mirror, _, _ := strings.Cut(strings.TrimSpace(mirrors), "\n")
	if mirror == "" {
		return nil, errors.New("apt has no list of Debian 12 (bookworm); compose Talos on Debian 12, after apt-get update")
	}
	lists, source := c.temporary(suite), c.temporary(suite+".list")
	entry := fmt.Sprintf("deb [signed-by=%s] %s %s main\n", debianKeys, mirror, suite)
	if err := errors.Join(os.MkdirAll(filepath.Join(lists, "partial"), 0o755), os.WriteFile(source, []byte(entry), 0o644)); err != nil {
		return nil, err
	}
	apt := []string{
		"-o", "Dir::Etc::sourcelist=" + source, "-o", "Dir::Etc::sourceparts=-", "-o", "Dir::State::lists=" + lists + "/",
		"-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache=", "-o", "APT::Sandbox::User=root", "-o", "Debug::NoLocking=true",
	}
	_, err = run(ctx, "apt-get", append(apt, "update")...)
	return apt, err
}

// kernelRelease is the release of the kernel that is named in the output of apt-cache depends.
func kernelRelease(depends string) string {
	for field := range strings.FieldsSeq(depends) {
		if release, ok := strings.CutPrefix(field, "linux-image-"); ok && release[0] >= '0' && release[0] <= '9' {
			return release
		}
	}
	return ""
}

func missing(file string) bool {
	_, err := os.Stat(file)
	return err != nil
}

// extract unpacks packages into a folder in which bin, lib and sbin are links to those of usr. It leaves out what is in unused and without.
func extract(ctx context.Context, folder string, debs []string, without ...string) error {
	args := []string{"-x", "-C", folder, "--keep-directory-symlink", "--no-same-owner"}
	for _, name := range append(slices.Clone(unused), without...) {
		args = append(args, "--exclude="+name)
	}
	for _, deb := range debs {
		if err := pipe(exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb), exec.CommandContext(ctx, "tar", args...)); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(deb), err)
		}
	}
	return nil
}

// pipe runs two commands, of which the second reads what the first writes.
func pipe(from, to *exec.Cmd) error {
	reader, err := from.StdoutPipe()
	if err != nil {
		return err
	}
	var problems bytes.Buffer
	to.Stdin, to.Stderr, from.Stderr = reader, &problems, os.Stderr
	if err := from.Start(); err != nil {
		return err
	}
	if err := to.Run(); err != nil {
		_ = from.Process.Kill()
		_ = from.Wait()
		return fmt.Errorf("%s: %w\n%s", to.Path, err, strings.TrimSpace(problems.String()))
	}
	return from.Wait()
}

// without returns the packages whose names match none of the patterns.
func without(debs, patterns []string) []string {
	return slices.DeleteFunc(slices.Clone(debs), func(deb string) bool { return matches(packageName(deb), patterns) })
}

// only returns the packages with these names, and an error if one is not there.
func only(debs, names []string) ([]string, error) {
	var found []string
	for _, name := range names {
		at := slices.IndexFunc(debs, func(deb string) bool { return packageName(deb) == name })
		if at < 0 {
			return nil, fmt.Errorf("package %s is not among those that were downloaded", name)
		}
		found = append(found, debs[at])
	}
	return found, nil
}

// packageName is the name of the package in a file NAME_VERSION_ARCHITECTURE.deb.
func packageName(deb string) string {
	name, _, _ := strings.Cut(filepath.Base(deb), "_")
	return name
}

func matches(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return err == nil && ok
	})
}

// fileNames are the last parts of paths, sorted, each once.
func fileNames(paths []string) []string {
	var names []string
	for _, name := range paths {
		names = append(names, filepath.Base(name))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func inFolder(folder string, names []string) []string {
	var paths []string
	for _, name := range names {
		paths = append(paths, filepath.Join(folder, name))
	}
	return paths
}
