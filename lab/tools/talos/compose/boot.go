package main

import (
	"context"
	"debug/pe"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// epoch is the time of all files that are made, so that two builds of the same are equal.
var epoch = time.Unix(0, 0)

// boot makes what a machine boots: kernel, initramfs and command line for QEMU, the UKI that Talos installs, and the ISO.
func (c *composition) boot(ctx context.Context, kernel linux) error {
	if err := c.initramfs(ctx, kernel.release); err != nil {
		return fmt.Errorf("initramfs: %w", err)
	}
	if err := os.WriteFile(c.path("cmdline"), []byte(isoCmdline+"\n"), 0o644); err != nil {
		return err
	}
	if err := c.uki(ctx, kernel.release, cmdline, c.temporary("installed.efi")); err != nil {
		return fmt.Errorf("UKI: %w", err)
	}
	if err := c.uki(ctx, kernel.release, isoCmdline, c.temporary("iso.efi")); err != nil {
		return fmt.Errorf("UKI: %w", err)
	}
	if err := c.iso(ctx, c.temporary("iso.efi")); err != nil {
		return fmt.Errorf("ISO: %w", err)
	}
	return nil
}

// initramfs writes initramfs.cpio: Talos's init, the root file system, and before both the modules that preinit loads.
func (c *composition) initramfs(ctx context.Context, release string) error {
	folder := c.temporary("initramfs")
	preinit, err := beside("preinit")
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range []string{"modules", "dev", "proc", "sys", "root", "etc"} {
		errs = append(errs, os.MkdirAll(filepath.Join(folder, name), 0o755))
	}
	errs = append(errs, install(preinit, filepath.Join(folder, "init")),
		install(filepath.Join(filepath.Dir(c.machined), "init"), filepath.Join(folder, "init.talos")),
		os.Rename(c.temporary("rootfs.sqsh"), filepath.Join(folder, "rootfs.sqsh")))
	modules, err := c.loadOrder(ctx, release)
	errs = append(errs, err)
	var list strings.Builder
	for _, module := range modules {
		errs = append(errs, copyTo(module, filepath.Join(folder, "modules", filepath.Base(module)), 0o644))
		list.WriteString(filepath.Base(module) + "\n")
	}
	errs = append(errs, os.WriteFile(filepath.Join(folder, "modules/list"), []byte(list.String()), 0o644))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return archive(ctx, folder, c.path("initramfs.cpio"))
}

// loadOrder returns the files of bootModules and of all modules that they need, in the order in which they can be loaded.
func (c *composition) loadOrder(ctx context.Context, release string) ([]string, error) {
	options := c.temporary("modprobe.d")
	if err := os.Mkdir(options, 0o755); err != nil {
		return nil, err
	}
	var order []string
	seen := map[string]bool{}
	for _, module := range bootModules {
		out, err := run(ctx, "modprobe", "-d", c.temporary("root"), "-C", options, "-S", release, "--show-depends", module)
		if err != nil {
			return nil, err
		}
		for _, file := range moduleFiles(out) {
			if !seen[file] {
				seen[file] = true
				order = append(order, file)
			}
		}
	}
	return order, nil
}

// moduleFiles are the files in the output of modprobe --show-depends. Modules that are built in have none.
func moduleFiles(out string) []string {
	var files []string
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "insmod" {
			files = append(files, fields[1])
		}
	}
	return files
}

// archive writes a folder as an archive that the kernel unpacks.
func archive(ctx context.Context, folder, to string) (err error) {
	var names strings.Builder
	err = filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		name, err := filepath.Rel(folder, path)
		names.WriteString(name + "\n")
		return err
	})
	if err != nil {
		return err
	}
	if err := setTimes(folder, strings.Fields(names.String())); err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	cmd := exec.CommandContext(ctx, "cpio", "--create", "--format=newc", "--owner=+0:+0", "--reproducible", "--quiet")
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = folder, strings.NewReader(names.String()), out, os.Stderr
	return cmd.Run()
}

// setTimes sets the times of files to epoch, those of a folder after its files'.
func setTimes(folder string, names []string) error {
	var errs []error
	for i := len(names) - 1; i >= 0; i-- {
		errs = append(errs, os.Chtimes(filepath.Join(folder, names[i]), epoch, epoch))
	}
	return errors.Join(errs...)
}

// uki writes a UKI: a program for UEFI that is the kernel, the initramfs and the command line.
func (c *composition) uki(ctx context.Context, release, cmdline, to string) error {
	at, err := freeAddress(stub)
	if err != nil {
		return err
	}
	texts := map[string]string{"uki.cmdline": cmdline, "uki.uname": release}
	for name, text := range texts {
		if err := os.WriteFile(c.temporary(name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	var args []string
	for _, section := range []struct{ name, file string }{
		{".osrel", c.temporary("root/etc/os-release")}, {".cmdline", c.temporary("uki.cmdline")}, {".uname", c.temporary("uki.uname")},
		{".linux", c.path("vmlinuz")}, {".initrd", c.path("initramfs.cpio")},
	} {
		info, err := os.Stat(section.file)
		if err != nil {
			return err
		}
		args = append(args, "--add-section", section.name+"="+section.file, "--change-section-vma", fmt.Sprintf("%s=%#x", section.name, at))
		at = align(at + uint64(info.Size()))
	}
	_, err = run(ctx, "objcopy", append(args, stub, to)...)
	return err
}

// freeAddress is the first address behind the sections of a program for UEFI.
func freeAddress(path string) (uint64, error) {
	file, err := pe.Open(path)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	defer file.Close()
	header, ok := file.OptionalHeader.(*pe.OptionalHeader64)
	if !ok {
		return 0, fmt.Errorf("%s: is no program of 64 bit", path)
	}
	var end uint64
	for _, section := range file.Sections {
		end = max(end, uint64(section.VirtualAddress)+uint64(section.VirtualSize))
	}
	return header.ImageBase + align(end), nil
}

// align rounds an address up to one where a section may begin.
func align(address uint64) uint64 { return (address + 0xffff) &^ 0xffff }

// iso writes talos.iso, which boots a UKI on a machine with UEFI.
func (c *composition) iso(ctx context.Context, uki string) error {
	info, err := os.Stat(uki)
	if err != nil {
		return err
	}
	folder := c.temporary("iso")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	image := filepath.Join(folder, "efi.img")
	// A FAT32 file system needs 2 % for its tables and folders, and 33 MB at least.
	sectors := strconv.FormatInt(max(80_000, info.Size()/512*102/100), 10)
	for _, command := range [][]string{
		{"mformat", "-C", "-F", "-N", "0", "-T", sectors, "-i", image, "::"},
		{"mmd", "-i", image, "::EFI", "::EFI/BOOT"},
		{"mcopy", "-i", image, uki, "::EFI/BOOT/BOOTX64.EFI"},
		// With a size of 1, the firmware takes all of the image. The field has 16 bits, and cannot hold its size.
		{"xorriso", "-as", "mkisofs", "-quiet", "-V", "TALOS", "-R", "-e", "efi.img", "-no-emul-boot", "-boot-load-size", "1",
			"-o", c.path("talos.iso"), folder},
	} {
		if _, err := run(ctx, command[0], command[1:]...); err != nil {
			return err
		}
	}
	return nil
}
