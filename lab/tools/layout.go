package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// LayOut makes built tools usable under the names they are known by: programs and their further names in the folder bin,
// which belongs on PATH, and Pulumi plugins below home, which is a PULUMI_HOME. Both get links; what is there under such
// a name is replaced.
//
// The links are hard ones where the file system allows it: Pulumi looks for its language host beside its own real file,
// and warns about one that it finds elsewhere.
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

// PluginPath is where Pulumi expects a plugin's program below a PULUMI_HOME.
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
