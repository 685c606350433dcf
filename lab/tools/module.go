package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"
)

// download is the output of `go mod download -json` about a module.
type download struct {
	Path, Version, Error, Zip, Dir, Sum string
}

// moduleDir downloads a module that the go.mod in dir pins, and returns its folder in the module cache. go checks it
// against go.sum.
func moduleDir(ctx context.Context, dir, path string) (string, error) {
	d, err := goModDownload(ctx, dir, path)
	if err != nil {
		return "", err
	}
	if d.Dir == "" {
		return "", fmt.Errorf("module %s: %s", path, d.Error)
	}
	return d.Dir, nil
}

// goModDownload runs `go mod download -json` in dir. If the module itself has an error, it is in the returned value.
func goModDownload(ctx context.Context, dir, query string, env ...string) (download, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", query)
	cmd.Dir = dir
	cmd.Env = append(goEnvironment(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, runErr := cmd.Output()
	var d download
	if err := json.Unmarshal(out, &d); err != nil {
		return d, fmt.Errorf("module %s: %w\n%s", query, errors.Join(runErr, err), strings.TrimSpace(stderr.String()))
	}
	return d, nil
}

// apply copies the overlay's sources into the folder o.To of dir.
//
// It reads the module's archive, because go refuses to unpack a module that requires a newer Go. go does not check a
// module that is replaced by a folder, so apply checks the archive against the sum in the table.
func (o *Overlay) apply(ctx context.Context, dir string) error {
	empty, err := os.MkdirTemp(dir, ".download-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(empty)
	d, err := goModDownload(ctx, empty, o.Module+"@"+o.Version, "GOSUMDB=off", "GOFLAGS=-mod=mod")
	if err != nil {
		return err
	}
	if d.Zip == "" {
		return fmt.Errorf("module %s@%s: %s", o.Module, o.Version, d.Error)
	}
	sum, err := dirhash.HashZip(d.Zip, dirhash.Hash1)
	if err != nil {
		return err
	}
	if sum != o.Sum {
		return fmt.Errorf("module %s@%s: checksum %s, want %s; somebody changed the published module, do not use it",
			o.Module, o.Version, sum, o.Sum)
	}
	to := filepath.Join(dir, o.To)
	if err := modzip.Unzip(to, module.Version{Path: o.Module, Version: o.Version}, d.Zip); err != nil {
		return err
	}
	if o.Go != "" {
		if err := setGoVersion(filepath.Join(to, "go.mod"), o.Go); err != nil {
			return err
		}
	}
	for name, content := range o.Files {
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	for _, name := range o.Patches {
		if err := patch(ctx, to, filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("module %s@%s: %w", o.Module, o.Version, err)
		}
	}
	for name, other := range o.Replace {
		path := filepath.Join(to, name)
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("module %s@%s: %w; it cannot be replaced", o.Module, o.Version, err)
		}
		if err := errors.Join(os.Remove(path), copyFile(filepath.Join(dir, other), path)); err != nil {
			return err
		}
	}
	return nil
}

// patch changes the sources in a folder. It accepts no other lines around a change than those in the file.
func patch(ctx context.Context, dir, file string) error {
	cmd := exec.CommandContext(ctx, "patch", "-p1", "--fuzz=0", "--forward", "--batch", "--no-backup-if-mismatch", "-i", file)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("patch %s: %w\n%s", filepath.Base(file), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// setGoVersion sets the go directive of a go.mod and removes its toolchain line.
func setGoVersion(path, version string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := modfile.Parse(path, content, nil)
	if err != nil {
		return err
	}
	if err := f.AddGoStmt(version); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f.DropToolchainStmt()
	if content, err = f.Format(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}

// copyAll copies the declared files out of modules into the folder to. The modules are those that the sources in dir
// pin, or the overlay's copy in dir.
func copyAll(ctx context.Context, dir, to string, t Tool, copies []Copy) error {
	for _, c := range copies {
		var from string
		if o := t.overlay(c.Module); o != nil {
			from = filepath.Join(dir, o.To)
		} else {
			var err error
			if from, err = moduleDir(ctx, dir, c.Module); err != nil {
				return err
			}
		}
		mode := os.FileMode(0o644)
		if c.Executable {
			mode = 0o755
		}
		if err := copyTree(filepath.Join(from, c.From), filepath.Join(to, c.To), mode); err != nil {
			return fmt.Errorf("%s of module %s: %w", c.From, c.Module, err)
		}
	}
	return nil
}

// copyTree copies a file or a folder. The copies are writable, unlike the files of the module cache.
func copyTree(from, to string, mode os.FileMode) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case d.Type().IsRegular():
			return errors.Join(copyFile(path, target), os.Chmod(target, mode))
		}
		return fmt.Errorf("%s: neither file nor folder", path)
	})
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}

// goEnvironment is the environment of all go commands: the caller's, without the variables that could change a build
// but are not part of its key.
func goEnvironment() []string {
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "GOFLAGS", "GOWORK", "GOOS", "GOARCH", "GOEXPERIMENT", "GODEBUG":
		default:
			env = append(env, v)
		}
	}
	return append(env, "GOWORK=off", "GOFLAGS=")
}
