package qemu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/slipway-platform/slipway/lab/vm"
)

// file is the content of a volume. It exists as long as the volume.
type file struct{ path string }

// Close removes the file. The hypervisor calls it when it removes the volume.
func (f *file) Close() error {
	if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

var notInNames = regexp.MustCompile(`[^a-zA-Z0-9.]+`)

// newFile creates an empty file for a volume. Volumes of two storages may have the same name, so the file has a name of its own.
func newFile(dir string, disk *vm.Disk, suffix string) (*file, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, notInNames.ReplaceAllString(disk.Volume, "-")+"-*"+suffix)
	if err != nil {
		return nil, err
	}
	return &file{f.Name()}, f.Close()
}

// diskFile returns the file of a disk in QEMU's format, at least as large as the disk. It creates the file for an empty disk.
func diskFile(ctx context.Context, dir string, disk *vm.Disk) (string, error) {
	size := strconv.FormatInt(disk.Size, 10)
	if f, is := disk.Content.(*file); is {
		return f.path, image(ctx, "resize", "-q", "-f", "qcow2", f.path, size)
	}
	f, err := newFile(dir, disk, ".qcow2")
	if err != nil {
		return "", err
	}
	if err := image(ctx, "create", "-q", "-f", "qcow2", f.path, size); err != nil {
		return "", errors.Join(err, f.Close())
	}
	disk.Content = f
	return f.path, nil
}

// image runs qemu-img.
func image(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "qemu-img", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("qemu-img %s: %w: %s; it is in the package qemu-utils", args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}

// bootsByBIOS tells whether a disk has a boot sector.
func bootsByBIOS(ctx context.Context, path, dir string) (bool, error) {
	sector := filepath.Join(dir, "sector")
	if err := image(ctx, "dd", "-f", "qcow2", "-O", "raw", "bs=512", "count=1", "if="+path, "of="+sector); err != nil {
		return false, err
	}
	content, err := os.ReadFile(sector)
	return len(content) == 512 && content[510] == 0x55 && content[511] == 0xaa, err
}

// variables returns the file with the variables of a VM's UEFI firmware. Without an EFI disk it is in the folder of this run.
func variables(dir, run string, firmware Firmware, efi *vm.Disk) (string, error) {
	if efi == nil {
		path := filepath.Join(run, "variables.fd")
		return path, copyTo(path, firmware.Variables)
	}
	if f, is := efi.Content.(*file); is {
		return f.path, nil
	}
	f, err := newFile(dir, efi, ".fd")
	if err != nil {
		return "", err
	}
	if err := copyTo(f.path, firmware.Variables); err != nil {
		return "", errors.Join(err, f.Close())
	}
	efi.Content = f
	return f.path, nil
}

func copyTo(path, from string) error {
	source, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("UEFI firmware: %w; it is in the package ovmf", err)
	}
	defer source.Close()
	target, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
