package namespace

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The mounts of a lab are mounts of folders only. A mount on a single file would end when the file is replaced outside of the
// namespaces, as most editors do to save.

// needed says which kernel has the calls of this file.
const needed = "the lab needs Linux 5.12 or later"

// ReadOnly makes a folder read-only in the namespaces, with all that is mounted below it.
func ReadOnly(folder string) error {
	tree, err := unix.OpenTree(unix.AT_FDCWD, folder, unix.OPEN_TREE_CLONE|unix.AT_RECURSIVE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("make %s read-only: %w; %s", folder, err, needed)
	}
	defer unix.Close(tree)
	return moveReadOnly(tree, folder)
}

// ReplaceIn replaces some files of a folder in the namespaces, by their names. What else is in the folder stays, read-only.
func ReplaceIn(folder string, files map[string]string) error {
	tree, err := unix.OpenTree(unix.AT_FDCWD, folder, unix.OPEN_TREE_CLONE|unix.AT_RECURSIVE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("replace files in %s: %w; %s", folder, err, needed)
	}
	defer unix.Close(tree)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("replace files in %s: %w", folder, err)
	}
	if err := unix.Mount("tmpfs", folder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return fmt.Errorf("replace files in %s: %w", folder, err)
	}
	const machine = ".machine" // the folder as it is outside
	if err := os.Mkdir(filepath.Join(folder, machine), 0o755); err != nil {
		return fmt.Errorf("replace files in %s: %w", folder, err)
	}
	if err := moveReadOnly(tree, filepath.Join(folder, machine)); err != nil {
		return err
	}
	links := map[string]string{}
	for _, entry := range entries {
		links[entry.Name()] = filepath.Join(machine, entry.Name())
	}
	for name, file := range files {
		links[name] = file
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			return fmt.Errorf("replace files in %s: %w", folder, err)
		}
	}
	return nil
}

// moveReadOnly mounts a tree that belongs to no folder yet, read-only.
func moveReadOnly(tree int, folder string) error {
	attributes := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attributes); err != nil {
		return fmt.Errorf("make %s read-only: %w; %s", folder, err, needed)
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, folder, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount %s: %w; %s", folder, err, needed)
	}
	return nil
}
