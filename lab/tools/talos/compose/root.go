package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// rootFileSystem makes the folder of Talos's root file system, and rootfs.sqsh of it.
func (c *composition) rootFileSystem(ctx context.Context, debs []string, kernel linux) error {
	root := c.temporary("root")
	if err := skeleton(root); err != nil {
		return err
	}
	if err := extract(ctx, root, without(debs, rootLeftOut), "./var", "./etc"); err != nil {
		return err
	}
	if err := extract(ctx, root, kernel.debs, "./usr/lib/modules/*/System.map"); err != nil {
		return err
	}
	modules := filepath.Join(root, "usr/lib/modules", kernel.release)
	steps := []error{
		os.Rename(filepath.Join(modules, "vmlinuz"), c.path("vmlinuz")), removeAll(filepath.Join(modules, "kernel"), modulesRemoved),
		unpackModules(ctx, modules), mergePrograms(root), removeAll(root, rootRemoved), olderFileSystem(root), c.addTalos(root),
		moveNetworkPlugins(root), c.addFiles(root),
	}
	if err := errors.Join(steps...); err != nil {
		return err
	}
	if _, err := run(ctx, "depmod", "-b", root, kernel.release); err != nil {
		return err
	}
	// The processor is emulated: a low level of compression is faster to read.
	_, err := run(ctx, "mksquashfs", root, c.temporary("rootfs.sqsh"), "-all-root", "-noappend", "-no-progress", "-quiet",
		"-comp", "zstd", "-Xcompression-level", "3", "-b", "256K", "-mkfs-time", "0", "-all-time", "0")
	return err
}

// unpackModules decompresses the kernel's modules. As they are, the kernel and Debian's programs would do it at each boot.
func unpackModules(ctx context.Context, folder string) error {
	_, err := run(ctx, "find", folder, "-name", "*.ko.xz", "-exec", "xz", "--decompress", "{}", "+")
	return err
}

// skeleton makes a folder with the layout of Debian's packages: bin, sbin, lib and lib64 are links.
func skeleton(root string) error {
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		err := errors.Join(os.MkdirAll(filepath.Join(root, "usr", name), 0o755), os.Symlink("usr/"+name, filepath.Join(root, name)))
		if err != nil {
			return err
		}
	}
	return nil
}

// mergePrograms moves the programs of sbin into bin, because Talos has one folder of programs. A program replaces a link to it.
func mergePrograms(root string) error {
	bin, sbin := filepath.Join(root, "usr/bin"), filepath.Join(root, "usr/sbin")
	entries, err := os.ReadDir(sbin)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		existing, err := os.Lstat(filepath.Join(bin, entry.Name()))
		replace := errors.Is(err, fs.ErrNotExist) || err == nil && existing.Mode().Type() == fs.ModeSymlink && entry.Type() != fs.ModeSymlink
		if !replace {
			continue
		}
		if err := os.Rename(filepath.Join(sbin, entry.Name()), filepath.Join(bin, entry.Name())); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(sbin), os.Symlink("bin", sbin), os.Remove(filepath.Join(root, "sbin")),
		os.Symlink("usr/bin", filepath.Join(root, "sbin")))
}

// olderFileSystem gives mkfs.xfs the options that Talos asks for by the name of a kernel, without options that Debian's mkfs.xfs does not
// know.
func olderFileSystem(root string) error {
	folder := filepath.Join(root, "usr/share/xfsprogs/mkfs")
	text, err := os.ReadFile(filepath.Join(folder, "lts_6.1.conf"))
	if err != nil {
		return err
	}
	lines := slices.DeleteFunc(strings.SplitAfter(string(text), "\n"), func(line string) bool { return strings.Contains(line, "nrext64") })
	return os.WriteFile(filepath.Join(folder, "lts_6.12.conf"), []byte(strings.Join(lines, "")), 0o644)
}

// addTalos installs Talos's and containerd's programs. Some names are links to machined, which looks at the name it is run by.
func (c *composition) addTalos(root string) error {
	bin := filepath.Join(root, "usr/bin")
	errs := []error{
		install(c.machined, filepath.Join(bin, "init")),
		install(c.containerd, filepath.Join(bin, "containerd")),
		install(filepath.Join(filepath.Dir(c.containerd), "containerd-shim-runc-v2"), filepath.Join(bin, "containerd-shim-runc-v2")),
	}
	for _, name := range []string{"poweroff", "shutdown", "dashboard"} {
		errs = append(errs, ignoreMissing(os.Remove(filepath.Join(bin, name))), os.Link(filepath.Join(bin, "init"), filepath.Join(bin, name)))
	}
	return errors.Join(errs...)
}

// moveNetworkPlugins moves the CNI plugins to where containerd looks for them.
func moveNetworkPlugins(root string) error {
	to := filepath.Join(root, "opt/cni/bin")
	errs := []error{os.MkdirAll(to, 0o755)}
	for _, name := range networkPlugins {
		errs = append(errs, os.Rename(filepath.Join(root, "usr/lib/cni", name), filepath.Join(to, name)))
	}
	return errors.Join(append(errs, os.RemoveAll(filepath.Join(root, "usr/lib/cni")))...)
}

// addFiles makes the folders, files and links that Talos expects.
func (c *composition) addFiles(root string) error {
	var errs []error
	for _, name := range rootFolders {
		errs = append(errs, os.MkdirAll(filepath.Join(root, name), 0o755))
	}
	sources := filepath.Join(filepath.Dir(c.machined), "data")
	for name, source := range rootSources {
		errs = append(errs, copyTo(filepath.Join(sources, "hack", source), filepath.Join(root, name), 0o644))
	}
	release, err := os.ReadFile(filepath.Join(sources, "os-release"))
	errs = append(errs, err, os.WriteFile(filepath.Join(root, "etc/os-release"), osRelease(release, c.talos), 0o644))
	for _, name := range rootEmpty {
		errs = append(errs, os.WriteFile(filepath.Join(root, name), nil, 0o644))
	}
	for name, text := range rootText {
		errs = append(errs, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
	for name, target := range rootLinks {
		errs = append(errs, ignoreMissing(os.Remove(filepath.Join(root, name))), os.Symlink(target, filepath.Join(root, name)))
	}
	trusted, err := c.trusted()
	errs = append(errs, err, os.WriteFile(filepath.Join(root, "usr/share/lab/ca.pem"), trusted, 0o644))
	return errors.Join(errs...)
}

var talosVersion = regexp.MustCompile(`v\d+\.\d+\.\d+`)

// osRelease returns the os-release of a version, as Talos's own build writes it, from that of the release whose sources are built. The
// kubelet reports it in the Node object.
func osRelease(of []byte, version string) []byte {
	return talosVersion.ReplaceAll(of, []byte("v"+version))
}

// removeAll removes files and folders below root.
func removeAll(root string, names []string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, os.RemoveAll(filepath.Join(root, name)))
	}
	return errors.Join(errs...)
}

func install(from, to string) error {
	if err := ignoreMissing(os.Remove(to)); err != nil {
		return err
	}
	return copyTo(from, to, 0o755)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// copyTo copies a file and makes the folder that it is copied to.
func copyTo(from, to string, mode fs.FileMode) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return fmt.Errorf("%s: %w", to, err)
	}
	return nil
}
