package tools

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// sample is a tools folder with one tool, "hello", that go builds quickly.
func sample(t *testing.T) (source string, tool Tool) {
	t.Helper()
	source = t.TempDir()
	write(t, filepath.Join(source, "hello", "go.mod"), "module hello\n\ngo 1.26.0\n")
	write(t, filepath.Join(source, "hello", "main.go"), "package main\n\nvar version = \"none\"\n\nfunc main() { println(version) }\n")
	return source, Tool{Name: "hello", Version: "1.0.0", Package: ".", LDFlags: []string{"-X", "main.version=1.0.0"}, CPU: time.Second}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestKey_ChangesWithAllThatGoesIntoABuild(t *testing.T) {
	source, tool := sample(t)
	base, err := key("go1", source, tool)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func() (string, string, Tool){
		"go version": func() (string, string, Tool) { return "go2", source, tool },
		"link flags": func() (string, string, Tool) {
			tool := tool
			tool.LDFlags = nil
			return "go1", source, tool
		},
		"source": func() (string, string, Tool) {
			source, tool := sample(t)
			write(t, filepath.Join(source, "hello", "main.go"), "package main\n\nfunc main() {}\n")
			return "go1", source, tool
		},
		"new file": func() (string, string, Tool) {
			source, tool := sample(t)
			write(t, filepath.Join(source, "hello", "sub", "x.go"), "package sub\n")
			return "go1", source, tool
		},
		"data": func() (string, string, Tool) {
			tool := tool
			tool.Data = []Copy{{Module: "m", From: "a", To: "b"}}
			return "go1", source, tool
		},
		"part": func() (string, string, Tool) {
			tool := tool
			tool.Parts = map[string]Tool{"part": tool}
			return "go1", source, tool
		},
		"overlay": func() (string, string, Tool) {
			tool := tool
			tool.Overlays = []Overlay{{Files: map[string]string{"a": "b"}}}
			return "go1", source, tool
		},
	} {
		k, err := key(change())
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if k == base {
			t.Errorf("%s: same key", name)
		}
	}
}

func TestKey_IgnoresTestsEstimateAndPlace(t *testing.T) {
	source, tool := sample(t)
	base, err := key("go1", source, tool)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, tool := sample(t)
	tool.CPU = time.Hour
	tool.Installed = &Installed{Prefix: "v"}
	write(t, filepath.Join(elsewhere, "hello", "main_test.go"), "package main\n")
	k, err := key("go1", elsewhere, tool)
	if err != nil {
		t.Fatal(err)
	}
	if k != base {
		t.Errorf("got %s, want %s", k, base)
	}
}

func TestKey_ChangesWithTheSourcesOfAPart(t *testing.T) {
	source, part := sample(t)
	write(t, filepath.Join(source, "whole", "go.mod"), "module whole\n")
	whole := Tool{Name: "whole", Parts: map[string]Tool{"part": part}}
	before, err := key("go1", source, whole)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(source, "hello", "more.go"), "package main\n")
	if after, err := key("go1", source, whole); err != nil || after == before {
		t.Errorf("key %s, before %s, %v", after, before, err)
	}
}

func TestKey_AMissingFolderNamesTheTool(t *testing.T) {
	if _, err := key("go1", t.TempDir(), Tool{Name: "absent"}); err == nil {
		t.Error("no error")
	}
}
