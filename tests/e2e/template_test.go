//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"

	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/tests/docs"
)

const probeProgram = command.Module + "/cmd/slipway-probe"

// TestTutorial_PulumiNewMakesARepositoryThatComesUpFromSource makes a repository by the command of docs/updating.md with Pulumi's CLI, goes
// on as the README in it says, and brings its cluster up to Flux. Pulumi compiles the program, and the probe, from a module of the last
// commit of this checkout. The template names that version in the place of a release, which may not exist yet.
func TestTutorial_PulumiNewMakesARepositoryThatComesUpFromSource(t *testing.T) {
	const document = "docs/updating.md"
	steps, err := docs.Steps(t.Name(), document, readDocument(t, document))
	require.NoError(t, err)
	require.Len(t, steps, 1)
	clone, folder := cloneOf(t), t.TempDir()
	servesModule(t, clone)

	// The CLI is in a lab only, and the lab of the repository needs the repository. `go mod tidy`, which `pulumi new` runs, also looks for
	// modules that only tests of other modules import: with -e, it goes on without those that are not in the cache.
	maker := startLabOf(t, smallProject(t), "template")
	maker.runs(t, after("cd "+folder+"\nexport GOSUMDB=off GOFLAGS=\"$GOFLAGS -e\"", steps[0]), strings.NewReplacer("PATH/", clone+"/"))
	maker.must("clean")

	home := filepath.Join(folder, "home")
	editStackFile(t, filepath.Join(home, "Pulumi.home.yaml"), func(s settings) {
		s.set("gitops", map[string]any{"url": "https://git.home.arpa/me/home.git"})
	})
	out, err := exec.CommandContext(t.Context(), "go", "-C", home, "run", ".", "check").CombinedOutput()
	require.NoError(t, err, "%s", out)
	runGit(t, "-C", home, "init", "--quiet", "--initial-branch", "main")
	runGit(t, "-C", home, "add", ".")
	commitAll(t, home, "Declare the cluster")

	l := startLabOf(t, home, "source")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "home")
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "home")
	l.in("sh", "-ec", `pulumi stack export --stack home | grep --count "go run $0"`, probeProgram)
	l.applied("home", "flux-system")
	l.in("kubectl", "--context=admin@home", "get", "namespace/apps")
	l.pulumi("state", "unprotect", "--all", "--yes", "--stack", "home")
	l.pulumi("destroy", "--yes", "--skip-preview", "--stack", "home")
	require.Empty(t, l.status().VMs)
}

// servesModule lets Go fetch the module of a clone's last commit from a folder, under a version that it writes into the template. A lab has
// nothing but the module cache: until the end of the test, that has the module, and those that it needs, checked by the clone's go.sum.
func servesModule(t *testing.T, clone string) {
	t.Helper()
	output := func(program string, args ...string) string {
		out, err := exec.CommandContext(t.Context(), program, args...).Output()
		require.NoError(t, err, "%s %v", program, args)
		return strings.TrimSpace(string(out))
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(clone, name))
		require.NoError(t, err)
		return string(text)
	}
	put := func(path, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	var seconds int64
	var commit string
	_, err := fmt.Sscan(output("git", "-C", clone, "log", "--max-count=1", "--format=%ct %H"), &seconds, &commit)
	require.NoError(t, err)
	own := module.Version{Path: command.Module, Version: module.PseudoVersion("v0", "", time.Unix(seconds, 0), commit[:12])}
	var archive strings.Builder
	require.NoError(t, modzip.CreateFromVCS(&archive, own, clone, commit, ""))
	proxy, user, template := t.TempDir(), t.TempDir(), "templates/cluster/go.mod"
	served := filepath.Join(proxy, own.Path, "@v", own.Version)
	put(served+".zip", archive.String())
	put(served+".mod", read("go.mod"))
	put(served+".info", fmt.Sprintf(`{"Version": %q}`, own.Version))
	t.Setenv("GOPROXY", "file://"+proxy+","+output("go", "env", "GOPROXY"))
	t.Setenv("GONOSUMDB", own.Path)
	cache := output("go", "env", "GOMODCACHE")
	t.Cleanup(func() {
		files, _ := filepath.Glob(filepath.Join(cache, "cache", "download", own.Path, "@v", own.Version+".*")) // the pattern is valid
		for _, path := range append(files, filepath.Join(cache, own.String())) {
			_ = os.RemoveAll(path) // what is left does no harm: the version has these files everywhere
		}
	})

	before, _, found := strings.Cut(read(template), own.Path+" ")
	require.True(t, found)
	pinned := before + own.Path + " " + own.Version + "\n"
	put(filepath.Join(clone, template), pinned)
	put(filepath.Join(user, "go.mod"), strings.ReplaceAll(pinned, "${PROJECT}", "user"))
	put(filepath.Join(user, "go.sum"), read("go.sum"))
	output("go", "-C", user, "list", "-mod=mod", "-modcacherw", "-deps", own.Path+"/cmd", probeProgram)
}
