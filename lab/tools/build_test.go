package tools

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// These builds are of a program without imports. A link takes some tenths of a second.

func TestBuild_BuildsOnceAndFindsItAgain(t *testing.T) {
	source, tool := sample(t)
	tool.Links = []string{"hi"}
	b := &Builder{Cache: t.TempDir(), Source: source, Home: t.TempDir()}
	plan, err := b.Plan(t.Context(), []Tool{tool})
	if err != nil || plan[0].State != Missing {
		t.Fatalf("got %+v, %v", plan, err)
	}
	var out bytes.Buffer
	b.Progress = &out
	built, err := b.Build(t.Context(), []Tool{tool})
	if err != nil {
		t.Fatal(err)
	}
	if built["hello"] != plan[0].Path {
		t.Errorf("built %s, planned %s", built["hello"], plan[0].Path)
	}
	for _, path := range []string{built["hello"], filepath.Join(filepath.Dir(built["hello"]), "hi")} {
		if said, err := exec.Command(path).CombinedOutput(); err != nil || string(said) != "1.0.0\n" {
			t.Errorf("%s said %q, %v", path, said, err)
		}
	}
	plan, err = b.Plan(t.Context(), []Tool{tool})
	if err != nil || plan[0].State != Cached || plan[0].Record.CPU <= 0 || plan[0].Record.Bytes <= 0 {
		t.Errorf("after the build: %+v, %v", plan, err)
	}
	out.Reset()
	if _, err := b.Build(t.Context(), []Tool{tool}); err != nil || out.Len() > 0 {
		t.Errorf("the second build said %q, %v", out.String(), err)
	}
	left, err := filepath.Glob(filepath.Join(b.Cache, "tools", "hello", "*.tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

func TestBuild_ComposesWhatItsPartsAre(t *testing.T) {
	source, part := sample(t)
	write(t, filepath.Join(source, "whole", "go.mod"), "module whole\n\ngo 1.26.0\n")
	write(t, filepath.Join(source, "whole", "compose", "main.go"), `package main

import (
	"os"
	"strings"
)

func main() {
	if err := os.Mkdir(os.Args[3], 0o755); err != nil {
		panic(err)
	}
	if err := os.WriteFile(os.Args[3]+"/args", []byte(strings.Join(os.Args[1:], " ")), 0o644); err != nil {
		panic(err)
	}
}
`)
	write(t, filepath.Join(source, "whole", "beside", "main.go"), "package main\n\nfunc main() {}\n")
	whole := Tool{
		Name: "whole", Version: "1", Package: "./compose", Packages: []string{"./beside"}, Static: true,
		Binary: "compose", Compose: []string{"-x"}, Parts: map[string]Tool{"first": part},
	}
	b := &Builder{Cache: t.TempDir(), Source: source, Home: t.TempDir()}
	built, err := b.Build(t.Context(), []Tool{whole})
	if err != nil {
		t.Fatal(err)
	}
	args, err := os.ReadFile(filepath.Join(built["whole"], "args"))
	hello, found := strings.CutPrefix(string(args), "-x -out "+filepath.Dir(built["whole"])+".tmp/out/data -cache "+b.Cache+" -first ")
	if err != nil || !found {
		t.Fatalf("composed with %q, %v", args, err)
	}
	if said, err := exec.Command(hello).CombinedOutput(); err != nil || string(said) != "1.0.0\n" {
		t.Errorf("the part said %q, %v", said, err)
	}
	if !executable(filepath.Join(filepath.Dir(built["whole"]), "beside")) {
		t.Error("the other program is not there")
	}
}

func TestBuild_NamesAllThatTheMachineLacks(t *testing.T) {
	source, tool := sample(t)
	tool.Host = map[string]string{"sh": "dash", "no-such-program": "first", "/no/such/file": "second", "no-such-either": "first"}
	b := &Builder{Cache: t.TempDir(), Source: source, Home: t.TempDir()}
	_, err := b.Build(t.Context(), []Tool{tool})
	want := "tool hello: the machine has no /no/such/file, no-such-either, no-such-program; " +
		"install: apt-get install --no-install-recommends first second"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestBuild_AFailureNamesTheToolAndRepeatsTheLog(t *testing.T) {
	source, good := sample(t)
	write(t, filepath.Join(source, "broken", "go.mod"), "module broken\n\ngo 1.26.0\n")
	write(t, filepath.Join(source, "broken", "main.go"), "package main\n\nfunc main() { undeclared() }\n")
	b := &Builder{Cache: t.TempDir(), Source: source, Home: t.TempDir()}
	_, err := b.Build(t.Context(), []Tool{{Name: "broken", Version: "1", Package: "."}, good})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"tool broken", "undefined: undeclared", ".log"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
	plan, err := b.Plan(t.Context(), []Tool{good})
	if err != nil || plan[0].State != Cached {
		t.Errorf("one tool's failure lost another: %+v, %v", plan, err)
	}
}

func TestBuild_TwoAtOnceBuildOnce(t *testing.T) {
	source, tool := sample(t)
	cache, home := t.TempDir(), t.TempDir()
	var wait sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		wait.Go(func() {
			b := &Builder{Cache: cache, Source: source, Home: home}
			_, errs[i] = b.Build(t.Context(), []Tool{tool})
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestBuild_ACancelledBuildLeavesNothingThatLooksBuilt(t *testing.T) {
	source, tool := sample(t)
	b := &Builder{Cache: t.TempDir(), Source: source, Home: t.TempDir()}
	plan, err := b.Plan(t.Context(), []Tool{tool})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.buildOne(ctx, source, "go", plan[0], nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if plan, err = b.Plan(t.Context(), []Tool{tool}); err != nil || plan[0].State != Missing {
		t.Errorf("got %+v, %v", plan, err)
	}
}

func TestLock_WaitsForTheOtherAndGivesUpWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	unlock()
	unlock, err = lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestInstalled_TakesTheMachinesOwnInExactlyThatVersion(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	script(t, filepath.Join(dir, "thing"), "echo v1.2.3")
	script(t, filepath.Join(dir, "thing-host"), "exit 1")
	b := &Builder{Home: t.TempDir()}
	thing := Tool{Name: "thing", Version: "1.2.3", Installed: &Installed{Args: []string{"version"}, Prefix: "v"}}
	if got := b.installed(t.Context(), thing, nil); got != filepath.Join(dir, "thing") {
		t.Errorf("got %q", got)
	}
	thing.Version = "1.2.30"
	if got := b.installed(t.Context(), thing, nil); got != "" {
		t.Errorf("another version, but got %q", got)
	}
	host := Tool{Name: "thing-host", Version: "9", Installed: &Installed{Beside: "thing"}}
	if got := b.installed(t.Context(), host, nil); got != "" {
		t.Errorf("its neighbour was not found, but got %q", got)
	}
	found := map[string]string{"thing": filepath.Join(dir, "thing")}
	if got := b.installed(t.Context(), host, found); got != filepath.Join(dir, "thing-host") {
		t.Errorf("got %q", got)
	}
}

func TestInstalled_TakesPluginsThatPulumiHasDownloaded(t *testing.T) {
	b := &Builder{Home: t.TempDir()}
	plugin := Tool{Name: "p", Plugin: "p", Binary: "pulumi-resource-p", Version: "1.0.0"}
	if got := b.installed(t.Context(), plugin, nil); got != "" {
		t.Errorf("got %q", got)
	}
	want := filepath.Join(b.Home, "plugins", "resource-p-v1.0.0", "pulumi-resource-p")
	script(t, want, "exit 0")
	if got := b.installed(t.Context(), plugin, nil); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSaysVersion_DistinguishesSimilarVersions(t *testing.T) {
	for output, want := range map[string]bool{
		"v1.12.0\n": true, "Client v1.12.0\n": true, "v1.12.0-beta.1\n": false, "v1.12.01": false, "v11.12.0": false, "": false,
	} {
		if got := saysVersion(output, "v", "1.12.0"); got != want {
			t.Errorf("%q: got %v", output, got)
		}
	}
}

func TestLayOut_PlacesProgramsLinksAndPlugins(t *testing.T) {
	dir := t.TempDir()
	built := map[string]string{"cilium-crds": filepath.Join(dir, "crds")}
	for _, name := range []string{"kube", "tls"} {
		built[name] = filepath.Join(dir, "cache", name)
		script(t, built[name], "exit 0")
	}
	bin, home := filepath.Join(dir, "bin"), filepath.Join(dir, "home")
	for range 2 {
		if err := LayOut(built, bin, home); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{
		filepath.Join(bin, "kube"), filepath.Join(bin, "kubectl"),
		filepath.Join(home, "plugins", "resource-tls-v5.2.0", "pulumi-resource-tls"),
	} {
		if !executable(path) {
			t.Errorf("%s: not there", path)
		}
	}
	if entries, err := os.ReadDir(bin); err != nil || len(entries) != 2 {
		t.Errorf("%d entries in bin, %v", len(entries), err)
	}
}

func TestLayOut_RunsAProgramByItsScript(t *testing.T) {
	dir := t.TempDir()
	built := map[string]string{"pulumi-language-go": filepath.Join(dir, "cache", "host")}
	script(t, built["pulumi-language-go"], `echo "$@"`)
	bin := filepath.Join(dir, "bin")
	for range 2 {
		if err := LayOut(built, bin, filepath.Join(dir, "home")); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("SLIPWAY_LAB", dir)
	file := filepath.Join(dir, "project", "Pulumi.yaml")
	for text, want := range map[string]string{
		"runtime: go\n": "127.0.0.1:1\n",
		"runtime:\n  options:\n    buildTarget: /a/b # kept\n": "-buildTarget=/a/b 127.0.0.1:1\n",
	} {
		write(t, file, text)
		out, err := exec.Command(filepath.Join(bin, "pulumi-language-go"), "127.0.0.1:1").CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("%q: got %q, %v", text, out, err)
		}
	}
}

func script(t *testing.T, path, body string) {
	t.Helper()
	write(t, path, "#!/bin/sh\n"+body+"\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestByFolder_ToolsOfAFolderFollowEachOther(t *testing.T) {
	item := func(name, folder string) Item { return Item{Tool: Tool{Name: name, Folder: folder}} }
	groups := byFolder([]Item{item("a", "shared"), item("b", ""), item("c", "shared"), item("d", "")})
	var names [][]string
	for _, group := range groups {
		var of []string
		for _, item := range group {
			of = append(of, item.Tool.Name)
		}
		names = append(names, of)
	}
	if want := [][]string{{"a", "c"}, {"b"}, {"d"}}; !slices.EqualFunc(names, want, slices.Equal) {
		t.Errorf("got %q, want %q", names, want)
	}
}

func TestGoFlags_AreTheMakefilesSoThatTheCompilersCacheIsShared(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if want := "\nGOFLAGS ?= " + GoFlags + "\n"; err != nil || !strings.Contains(string(makefile), want) {
		t.Fatalf("the Makefile has no line %q (%v)", want, err)
	}
}
