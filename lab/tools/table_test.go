package tools

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// every is all tools, each once, and those that they are composed of.
func every() []Tool {
	all := slices.Concat(Table, OnDemand)
	known := map[string]bool{}
	for _, tool := range all {
		known[tool.Name] = true
	}
	for _, tool := range OnDemand {
		for _, part := range tool.Parts {
			if !known[part.Name] {
				known[part.Name] = true
				all = append(all, part)
			}
		}
	}
	return all
}

func TestTable_NamesAndPluginsAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, tool := range every() {
		for _, name := range append([]string{tool.Name}, tool.Links...) {
			if seen[name] {
				t.Errorf("%s: declared twice", name)
			}
			seen[name] = true
		}
		if tool.Plugin != "" && tool.Binary != "pulumi-resource-"+tool.Plugin {
			t.Errorf("%s: plugin %s has binary %s, which Pulumi does not look for", tool.Name, tool.Plugin, tool.Binary)
		}
		if tool.CPU <= 0 {
			t.Errorf("%s: no CPU time, so the estimate leaves it out", tool.Name)
		}
		if strings.HasPrefix(tool.Version, "v") || tool.Version == "" {
			t.Errorf("%s: version %q", tool.Name, tool.Version)
		}
	}
}

func TestTable_EveryFolderPinsTheDeclaredModule(t *testing.T) {
	for _, tool := range slices.Concat([]Tool{proxmoxPlugin(true), proxmoxPlugin(false)}, every()) {
		path := filepath.Join(tool.folder(), tool.modFile())
		f := parseGoMod(t, path)
		if want := "github.com/slipway-platform/slipway/lab/tools/" + tool.folder(); f.Module.Mod.Path != want {
			t.Errorf("%s: module %s, want %s", path, f.Module.Mod.Path, want)
		}
		if _, err := os.Stat(strings.TrimSuffix(path, ".mod") + ".sum"); err != nil {
			t.Errorf("%s: %v", tool.Name, err)
		}
		if tool.Module == "" && tool.Overlays != nil {
			continue // pinned by version and sum in the table
		}
		if got := pinned(f, tool.Module); got != tool.ModuleVersion {
			t.Errorf("%s: %s pins %s at %q, the table says %q", tool.Name, path, tool.Module, got, tool.ModuleVersion)
		}
	}
}

func TestTable_EveryCopyIsOfAPinnedModule(t *testing.T) {
	copies := 0
	for _, tool := range every() {
		f := parseGoMod(t, filepath.Join(tool.folder(), tool.modFile()))
		for _, c := range append(append([]Copy{}, tool.Embed...), tool.Data...) {
			copies++
			if tool.overlay(c.Module) != nil {
				continue
			}
			if pinned(f, c.Module) == "" {
				t.Errorf("%s: copies from %s, which its go.mod does not name", tool.Name, c.Module)
			}
		}
	}
	if copies == 0 {
		t.Error("no copies looked at")
	}
}

func TestTable_NoFolderIsForgotten(t *testing.T) {
	used := map[string]bool{}
	for _, tool := range every() {
		used[tool.folder()] = true
	}
	mods, err := filepath.Glob("*/go.mod")
	if err != nil || len(mods) == 0 {
		t.Fatalf("no modules found: %v", err)
	}
	for _, mod := range mods {
		if !used[filepath.Dir(mod)] {
			t.Errorf("%s: no tool in the table is built from it", mod)
		}
	}
}

// Without a part of the declaration in the key, one of the two would be taken for the other.
func TestTable_BothProxmoxPluginsHaveTheirOwnBuild(t *testing.T) {
	older, err := key("go", ".", proxmoxPlugin(true))
	if err != nil {
		t.Fatal(err)
	}
	newer, err := key("go", ".", proxmoxPlugin(false))
	if err != nil || older == newer {
		t.Errorf("key %s of both, %v", newer, err)
	}
}

// Clusters are upgraded by one minor version at a time.
func TestOnDemand_IsTheMinorVersionBeforeAndTheOneAfter(t *testing.T) {
	var versions []string
	for _, tool := range []Tool{OnDemand[0], kubernetesProgram("kube", KubernetesVersion), OnDemand[1]} {
		versions = append(versions, minorOf(tool.Version))
		if !slices.Contains(tool.LDFlags, "k8s.io/component-base/version.gitMinor="+strings.TrimPrefix(minorOf(tool.Version), "1.")) {
			t.Errorf("%s: %v", tool.Name, tool.LDFlags)
		}
	}
	if want := []string{"1.35", "1.36", "1.37"}; !slices.Equal(versions, want) {
		t.Errorf("got %v, want %v", versions, want)
	}
}

func TestFind_KnowsTheTableOnly(t *testing.T) {
	if tool, err := Find("kube"); err != nil || tool.Name != "kube" {
		t.Errorf("got %v, %v", tool.Name, err)
	}
	if tool, err := Find("kube-1.35"); err != nil || tool.modFile() != "1.35.mod" || !strings.HasPrefix(tool.Version, "1.35.") {
		t.Errorf("got %+v, %v", tool, err)
	}
	if _, err := Find("kubectl"); err == nil {
		t.Error("found a tool that is not in the table")
	}
}

func parseGoMod(t *testing.T, path string) *modfile.File {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := modfile.Parse(path, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// pinned is the version that a go.mod makes of a module, or "".
func pinned(f *modfile.File, module string) string {
	version := ""
	for _, r := range f.Require {
		if r.Mod.Path == module {
			version = r.Mod.Version
		}
	}
	for _, r := range f.Replace {
		if r.Old.Path == module && r.New.Version != "" {
			version = r.New.Version
		}
	}
	return version
}
