package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// keyLength is the number of the hash's characters in the name of a cache folder.
const keyLength = 16

// SourceDir is the folder with the tools' modules: the folder of this package in the checkout from which the lab was
// built.
func SourceDir() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if ok {
		if _, err := os.Stat(file); err == nil {
			return filepath.Dir(file), nil
		}
	}
	return "", fmt.Errorf("tools: the checkout the lab was built from is gone (%s); build the lab again", filepath.Dir(file))
}

// toolchain describes the Go installation for a key.
func toolchain(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w; the lab builds its tools with Go, see https://go.dev/doc/install", err)
	}
	return strings.Join(strings.Fields(string(out)), " "), nil
}

// key identifies a build. It depends on the Go toolchain, on the declaration, on every file of the tool's folder except
// tests, and on the tool's parts. It does not depend on the estimate, nor on the way to find the machine's own program.
func key(goVersion, source string, t Tool) (string, error) {
	t.CPU, t.Installed = 0, nil
	declaration, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n", goVersion, declaration)
	root := filepath.Join(source, t.folder())
	err = walkSources(root, func(path string) error {
		content, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %d\n%s\n", path, len(content), content)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("tool %s: %w", t.Name, err)
	}
	for _, flag := range slices.Sorted(maps.Keys(t.Parts)) {
		part, err := key(goVersion, source, t.Parts[flag])
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "part %s %s\n", flag, part)
	}
	return hex.EncodeToString(sum.Sum(nil))[:keyLength], nil
}

// walkSources calls f for each file below root that is part of a build, in a fixed order, with its path relative to
// root.
func walkSources(root string, f func(path string) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return f(relative)
	})
}
