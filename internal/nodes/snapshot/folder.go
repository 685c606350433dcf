package snapshot

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// Folder returns the folder of snapshots below the folder for files that are neither configuration nor part of the project:
// ${XDG_STATE_HOME:-~/.local/state}/slipway.
func Folder(below string) (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) { // by its specification, another value is ignored
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "slipway", below), nil
}

// Path returns the path of a snapshot's file: an absolute path itself, or a file of the Folder.
func Path(below, file string) (string, error) {
	if filepath.IsAbs(file) {
		return file, nil
	}
	folder, err := Folder(below)
	return filepath.Join(folder, file), err
}

// List returns the names of a cluster's snapshots in a folder, as Name names them, the oldest first. A folder that does not exist has none.
func List(folder, cluster string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	named := regexp.MustCompile(`^` + regexp.QuoteMeta(cluster) + `-\d{8}T\d{6}Z\.db(\.age)?$`)
	var names []string
	for _, entry := range entries {
		if named.MatchString(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// Prune deletes the oldest snapshots of a cluster in a folder, so that at most keep are left; 0 keeps all.
func Prune(folder, cluster string, keep int) error {
	if keep == 0 {
		return nil
	}
	names, err := List(folder, cluster)
	if err != nil {
		return err
	}
	var problems []error
	for _, name := range names[:max(len(names)-keep, 0)] {
		path := filepath.Join(folder, name)
		problems = append(problems, os.Remove(path))
		if err := os.Remove(path + sumSuffix); !errors.Is(err, os.ErrNotExist) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}
