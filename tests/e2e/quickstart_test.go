//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/docs"
)

// TestTutorial_TheQuickStartBringsUpARepositoryOfItsOwn makes a repository with the built binary, by the commands of docs/quickstart.md,
// and brings its cluster up to Flux, with the areas and the application that are in it. The lab has made the stack: without a terminal,
// Pulumi offers none. The runs find no Go, as docs/updating.md says. Then it adds the application of docs/first-app.md, with a Secret and
// without a volume: first from manifests, and then from a chart.
func TestTutorial_TheQuickStartBringsUpARepositoryOfItsOwn(t *testing.T) {
	const document = "docs/quickstart.md"
	steps, err := docs.Steps(t.Name(), document, readDocument(t, document))
	require.NoError(t, err)
	require.Len(t, steps, 5, "new, token, up, look, remove")
	folder := t.TempDir()
	bin := filepath.Join(folder, "slipway", "bin")
	build := exec.CommandContext(t.Context(), "go", "-C", checkoutFolder, "build", "-o", filepath.Join(bin, "slipway"), ".")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))

	mine := strings.NewReplacer("https://github.com/OWNER/REPOSITORY.git", "https://git.home.arpa/me/home.git")
	for _, variable := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"} {
		t.Setenv(variable, "test@example.com")
	}
	began := time.Now()
	command := exec.CommandContext(t.Context(), "bash", "-e", "-c", mine.Replace(steps[0].Commands))
	command.Dir = folder
	out, err = command.CombinedOutput()
	require.NoError(t, err, "%s:%d: %s", document, steps[0].Line, out)
	written := time.Since(began)
	home := filepath.Join(folder, "home")
	runGit(t, "-C", home, "diff", "--exit-code", "main") // the command has committed the files

	l := startLabOf(t, home, "quickstart") // Pulumi's folder in it has the plugins, and nothing else
	l.hasNoGo(t)
	inTime(t, "from the binary to the first request to Proxmox VE", toFirstRequest, 1, func() time.Duration {
		began := time.Now()
		l.runs(t, after(`exec <<<"$PROXMOX_VE_API_TOKEN"`, steps[1]), mine)
		l.checkOutput(l.runs(t, after("export PULUMI_OPTION_SKIP_PREVIEW=true", steps[2]), mine), "")
		return written + l.firstRequest().Sub(began)
	})
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "home")
	l.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "home")
	require.NotContains(t, l.pulumi("stack", "export", "--stack", "home"), "go run ", "the commands in the state run the binary")
	for _, kind := range []string{"kustomizations", "helmreleases"} {
		require.NotContains(t, l.in("kubectl", "--context=admin@home", "get", kind, "--all-namespaces",
			`--output=jsonpath={range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`), " False")
	}
	require.Equal(t, "True", l.in("kubectl", "--context=admin@home", "get", "--namespace=flux-system", "kustomization/podinfo",
		`--output=jsonpath={.status.conditions[?(@.type=="Ready")].status}`))
	l.runs(t, steps[3], mine)

	editStackFile(t, filepath.Join(home, "Pulumi.home.yaml"), func(s settings) {
		s.set("secrets", map[string]any{"sealedSecrets": map[string]any{}})
	})
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "home")
	for _, fromChart := range []bool{false, true} {
		l.addFirstApp("home", docs.App{Cluster: "kubernetes/cluster", Chart: fromChart})
	}
	l.runs(t, steps[4], mine)
	require.Empty(t, l.status().VMs)
}

// after returns a step with a command before those of the document.
func after(command string, step docs.Step) docs.Step {
	step.Commands = command + "\n" + step.Commands
	return step
}

// hasNoGo hides Go from all later commands, and does what docs/updating.md says then.
func (l *lab) hasNoGo(t *testing.T) {
	t.Helper()
	const document = "docs/updating.md"
	steps, err := docs.Steps(t.Name(), document, readDocument(t, document))
	require.NoError(t, err)
	require.Len(t, steps, 1)
	folder := withoutGo(t)
	t.Setenv("PATH", folder)
	_, err = l.try("sh", "-c", "command -v go")
	require.Error(t, err, "Go is still there")
	l.runs(t, steps[0], strings.NewReplacer("~/.local/bin", folder))
	_, err = l.try("go", "env")
	require.Error(t, err, "Go is there again")
}
