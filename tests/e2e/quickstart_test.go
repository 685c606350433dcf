//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/docs"
)

// TestTutorial_TheQuickStartBringsUpARepositoryOfItsOwn makes a repository with the built binary, by the commands of docs/quickstart.md,
// and brings its cluster up to Flux, with the areas and the application that are in it. No program is compiled for that.
func TestTutorial_TheQuickStartBringsUpARepositoryOfItsOwn(t *testing.T) {
	const document = "docs/quickstart.md"
	steps, err := docs.Steps(t.Name(), document, readDocument(t, document))
	require.NoError(t, err)
	require.Len(t, steps, 4, "new, check, look, remove")
	folder := t.TempDir()
	bin := filepath.Join(folder, "slipway", "bin")
	build := exec.CommandContext(t.Context(), "go", "-C", checkoutFolder, "build", "-o", filepath.Join(bin, "slipway"), ".")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))

	mine := strings.NewReplacer("https://github.com/OWNER/REPOSITORY.git", "https://git.home.arpa/me/home.git")
	for _, step := range steps[:2] {
		command := exec.CommandContext(t.Context(), "bash", "-e", "-c", mine.Replace(step.Commands))
		command.Dir = folder
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s:%d: %s", document, step.Line, out)
	}
	home := filepath.Join(folder, "home")
	runGit(t, "-C", home, "init", "--quiet", "--initial-branch", "main")
	runGit(t, "-C", home, "add", ".")
	commitAll(t, home, "Declare the cluster")

	l := startLabOf(t, home, "quickstart")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "home")
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "home")
	l.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "home")
	require.NotContains(t, l.pulumi("stack", "export", "--stack", "home"), "go run ", "the commands in the state run the binary")
	for _, kind := range []string{"kustomizations", "helmreleases"} {
		require.NotContains(t, l.in("kubectl", "--context=admin@home", "get", kind, "--all-namespaces",
			`--output=jsonpath={range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`), " False")
	}
	require.Equal(t, "True", l.in("kubectl", "--context=admin@home", "get", "--namespace=flux-system", "kustomization/podinfo",
		`--output=jsonpath={.status.conditions[?(@.type=="Ready")].status}`))
	for _, step := range steps[2:] {
		l.runs(t, step, mine)
	}
	require.Empty(t, l.status().VMs)
}
