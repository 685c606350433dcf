package tools

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// LayOut links built tools under their usual names: programs in the folder bin, which belongs into PATH, and Pulumi
// plugins below home, which is a PULUMI_HOME. It replaces existing files of these names.
//
// It creates hard links where the file system allows that. Pulumi looks for its language host in the folder of its own
// real file, and warns about another folder. A program with a script stands beside it, under a hidden name.
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
		if t.Start != "" {
			hidden := filepath.Join(bin, "."+t.binary())
			errs = append(errs, link(path, hidden), start(t.Start, hidden, filepath.Join(bin, t.binary())))
			continue
		}
		for _, name := range append([]string{t.binary()}, t.Links...) {
			errs = append(errs, link(path, filepath.Join(bin, name)))
		}
	}
	return errors.Join(errs...)
}

// start writes a Tool.Start to a path.
func start(script, program, path string) error {
	if err := remove(path); err != nil {
		return err
	}
	return os.WriteFile(path, []byte("#!/bin/sh\nPROGRAM="+strconv.Quote(program)+"\n"+script+"\n"), 0o755)
}

// PluginPath is the path of a plugin's program below a PULUMI_HOME.
func PluginPath(home string, t Tool) string {
	return filepath.Join(home, t.pluginFolder(), t.binary())
}

func link(target, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := remove(path); err != nil {
		return err
	}
	if os.Link(target, path) == nil {
		return nil
	}
	return os.Symlink(target, path)
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
