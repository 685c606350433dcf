package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// LayOut links built tools under their usual names: programs in the folder bin, which belongs into PATH, and Pulumi
// plugins below home, which is a PULUMI_HOME. It replaces existing files of these names.
//
// It creates hard links where the file system allows that. Pulumi looks for its language host in the folder of its own
// real file, and warns about one in another folder.
func LayOut(built map[string]string, bin, home string) error {
	var errs []error
	for _, t := range Table {
		path, ok := built[t.Name]
		if !ok || t.Package == "" {
			continue
		}
		if t.Plugin != "" {
			errs = append(errs, link(path, PluginPath(home, t)))
			continue
		}
		for _, name := range append([]string{t.binary()}, t.Links...) {
			errs = append(errs, link(path, filepath.Join(bin, name)))
		}
	}
	return errors.Join(errs...)
}

// PluginPath is the path of a plugin's program below a PULUMI_HOME.
func PluginPath(home string, t Tool) string {
	return filepath.Join(home, t.pluginFolder(), t.binary())
}

func link(target, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("link to %s: %w", target, err)
	}
	if os.Link(target, path) == nil {
		return nil
	}
	return os.Symlink(target, path)
}
