package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// patches calls f for each overlay with patches.
func patches(t *testing.T, f func(tool Tool, o Overlay)) {
	t.Helper()
	found := 0
	for _, tool := range every() {
		for _, o := range tool.Overlays {
			if found += len(o.Patches); len(o.Patches) > 0 {
				f(tool, o)
			}
		}
	}
	if found == 0 {
		t.Error("no patch looked at")
	}
}

func TestPatches_BeginWithTheirReason(t *testing.T) {
	patches(t, func(tool Tool, o Overlay) {
		for _, name := range o.Patches {
			text, err := os.ReadFile(filepath.Join(tool.folder(), name))
			if err != nil {
				t.Fatal(err)
			}
			if reason, _, isPatch := strings.Cut(string(text), "\n--- "); !isPatch || len(strings.Fields(reason)) < 5 {
				t.Errorf("%s begins with %q, which is no reason", name, reason)
			}
		}
	})
}

func TestPatches_AllAreUsed(t *testing.T) {
	files, err := filepath.Glob("*/patches/*")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	patches(t, func(tool Tool, o Overlay) {
		for _, name := range o.Patches {
			used[filepath.Join(tool.folder(), name)] = true
		}
	})
	for _, file := range files {
		if !used[file] {
			t.Errorf("%s: no overlay names it", file)
		}
	}
}

func TestPatches_ApplyToTheSourcesOfTheirModule(t *testing.T) {
	if testing.Short() {
		t.Skip("unpacks modules")
	}
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	patches(t, func(tool Tool, o Overlay) {
		archive := filepath.Join(strings.TrimSpace(string(cache)), "cache/download", o.Module, "@v", o.Version+".zip")
		if _, err := os.Stat(archive); err != nil {
			t.Skip(err)
		}
		dir := t.TempDir()
		for _, name := range o.Patches {
			if err := copyFile(filepath.Join(tool.folder(), name), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.apply(t.Context(), dir); err != nil {
			t.Error(err)
		}
	})
}
