//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/docs"
)

// checkoutFolder is the folder of this checkout.
var checkoutFolder = filepath.Join("..", "..")

func readDocument(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(checkoutFolder, name))
	require.NoError(t, err)
	return string(text)
}

// stepsOf returns the blocks of a document that TestTutorial runs.
func stepsOf(t *testing.T, document string) []docs.Step {
	t.Helper()
	steps, err := docs.Steps("TestTutorial", document, readDocument(t, document))
	require.NoError(t, err)
	return steps
}

// documentsAreTrue runs the commands of the documents besides the tutorial, each document in its order, while both clusters run. The
// commands of docs/gates.md are the first, because they write the credentials that the others use.
func documentsAreTrue(t *testing.T, l *lab) {
	files, err := docs.Readers(checkoutFolder)
	require.NoError(t, err)
	const first = "docs/gates.md"
	files = slices.DeleteFunc(files, func(file string) bool { return file == first || file == "docs/tutorial.md" })
	examples := l.examples(t)
	looked := 0
	for _, file := range append([]string{first}, files...) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			for _, step := range stepsOf(t, file) {
				looked++
				l.runs(t, step, examples)
			}
		})
	}
	require.Greater(t, looked, 20, "steps")
}

// examples returns what the documents' placeholders stand for in this lab.
func (l *lab) examples(t *testing.T) *strings.Replacer {
	return strings.NewReplacer(
		"~/.local/state/slipway/labs/NAME", l.home(), " ADDRESS ", " 10.25.11.11 ", "age1…", newAgeKey(t).Recipient().String(),
	)
}

// answers are the variables of a person who has read docs/gates.md, and answers yes to every question.
const answers = `export PULUMI_SKIP_CONFIRMATIONS=true KUBECONFIG="$PWD/kubeconfig" TALOSCONFIG="$PWD/talosconfig"` + "\n"

// typed is what a command gets that asks for a secret.
const typed = "exec <<<typed\n"

// runs runs the commands of a step, and compares what they print with what the document quotes. Without examples they run as they are. It
// returns what they print.
func (l *lab) runs(t *testing.T, step docs.Step, examples *strings.Replacer) string {
	t.Helper()
	commands, began := step.Commands, time.Now()
	if examples != nil {
		commands = answers + examples.Replace(commands)
	}
	out, err := "", error(nil)
	switch step.Where {
	case docs.InCheckout:
		out, err = inCheckout(t, l, step.Commands)
	case docs.InClone:
		out, err = l.inClone(t, step.Commands, examples)
	case docs.InCloneOfState:
		out, err = l.shell("cd " + cloneOf(t) + "\n" + step.Commands)
	default:
		out, err = l.shell(commands)
	}
	require.NoError(t, err, "%s:%d: %s\n%s", step.Document, step.Line, step.Commands, end(out))
	require.NoError(t, compare(step, out), "%s:%d\n%s", step.Document, step.Line, end(out))
	t.Logf("%5.1f s  %s:%d", time.Since(began).Seconds(), step.Document, step.Line)
	return out
}

// shell runs commands in the lab as a person would type them, until one fails.
func (l *lab) shell(commands string) (string, error) {
	return l.try("bash", "-e", "-o", "pipefail", "-c", commands)
}

// inCheckout runs commands outside the lab. Its folder, which is not the checkout, gets the built probe.
func inCheckout(t *testing.T, l *lab, commands string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", commands)
	command.Dir = checkoutFolder
	out, err := command.CombinedOutput()
	if strings.Contains(commands, "make probe") {
		built, err := filepath.Abs(filepath.Join(checkoutFolder, "bin", "slipway-probe"))
		require.NoError(t, err)
		l.in("sh", "-ec", `mkdir -p bin; ln -sf "$1" bin/`, "sh", built)
	}
	return string(out), err
}

// cloneOf clones the checkout. The clone's main branch is that of its origin.
func cloneOf(t *testing.T) string {
	t.Helper()
	clone := filepath.Join(t.TempDir(), "slipway")
	runGit(t, "clone", "--quiet", checkoutFolder, clone)
	runGit(t, "-C", clone, "update-ref", "refs/remotes/origin/main", "HEAD")
	return clone
}

// inClone runs commands in a clone with an empty backend, in which nothing that they do matters to the lab's clusters. Stacks exist unless
// the commands create them; files exist that other programs write.
func (l *lab) inClone(t *testing.T, commands string, examples *strings.Replacer) (string, error) {
	t.Helper()
	clone, backend := cloneOf(t), t.TempDir()
	for _, name := range []string{"token", "1password-credentials.json", "age-key"} {
		require.NoError(t, os.WriteFile(filepath.Join(clone, name), []byte("an example\n"), 0o600))
	}
	begin := "cd " + clone + "\nexport PULUMI_SKIP_CONFIRMATIONS=true PULUMI_BACKEND_URL=file://" + backend + "\n" + typed
	if !strings.Contains(commands, "stack init") {
		begin += "for stack in infra apps; do pulumi stack init --no-select $stack; done\n"
	}
	if examples != nil {
		commands = examples.Replace(commands)
	}
	return l.shell(begin + commands)
}
