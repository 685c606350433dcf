//go:build e2e || matrix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lab is a running lab. The tests use it through its command, as people do.
type lab struct {
	t       *testing.T
	command string
	name    string
	project string // folder of the project; "" means this checkout
	hands   int    // how often a person had to do something besides the stack file and `up`

	mu     sync.Mutex
	record bytes.Buffer // output of all commands in the lab
}

// status is the part of `lab status --json` that the tests read.
type status struct {
	VMs []struct {
		Name, Cluster, Stage, Status string
	} `json:"vms"`
	Processes []struct {
		Name, Cluster string
	} `json:"processes"`
	Volumes []string `json:"volumes"`
}

// startLab starts a lab of this checkout. It ends with the test, unless the test failed and SLIPWAY_LAB_KEEP is set.
func startLab(t *testing.T, name string) *lab { return startLabOf(t, "", name) }

// startLabOf starts a lab of another checkout, with flags of `lab start`.
func startLabOf(t *testing.T, project, name string, flags ...string) *lab {
	t.Helper()
	command := os.Getenv("SLIPWAY_LAB_COMMAND")
	require.NotEmpty(t, command, "SLIPWAY_LAB_COMMAND is not set; run `make e2e`")
	l := &lab{t: t, command: command, name: fmt.Sprintf("%s-%d", name, os.Getpid()), project: project}
	l.starts()
	t.Cleanup(func() {
		defer l.ends()
		if t.Failed() && os.Getenv("SLIPWAY_LAB_KEEP") != "" {
			t.Logf("lab %s is kept", l.name)
			return
		}
		out, err := l.run("clean")
		assert.NoError(t, err, "the lab left something behind: %s", out)
	})
	l.must(append([]string{"start"}, flags...)...)
	return l
}

// runGit runs git, and fails the test on an error.
func runGit(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput()
	require.NoError(t, err, "git %v: %s", args, out)
}

// commitAll commits all changes of files that Git knows.
func commitAll(t *testing.T, checkout, message string) {
	t.Helper()
	runGit(t, "-C", checkout, "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "--allow-empty", "--all", "--message", message)
}

// cmd returns a subcommand of the lab.
func (l *lab) cmd(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, l.command, append([]string{"--name", l.name, "--project", l.project}, args...)...)
}

// run runs a subcommand of the lab and returns what it printed.
func (l *lab) run(args ...string) (string, error) {
	// Not the test's context, because it has ended at clean-up.
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	var out bytes.Buffer
	c := l.cmd(ctx, args...)
	c.Stdout = io.MultiWriter(&out, l)
	c.Stderr = c.Stdout
	err := c.Run()
	return out.String(), err
}

// Write adds to the record.
func (l *lab) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record.Write(p)
}

// must runs a subcommand and fails the test on an error.
func (l *lab) must(args ...string) string {
	l.t.Helper()
	start := time.Now()
	out, err := l.run(args...)
	require.NoError(l.t, err, "lab %s:\n%s", strings.Join(args, " "), end(out))
	l.t.Logf("%5.1f s  lab %s", time.Since(start).Seconds(), strings.Join(args, " "))
	return out
}

// in runs a command inside the lab and fails the test on an error.
func (l *lab) in(argv ...string) string {
	l.t.Helper()
	return l.must(append([]string{"exec", "--"}, argv...)...)
}

// try runs a command inside the lab that may fail.
func (l *lab) try(argv ...string) (string, error) {
	return l.run(append([]string{"exec", "--"}, argv...)...)
}

// secret runs a command inside the lab whose output is secret: it is not recorded.
func (l *lab) secret(argv ...string) string {
	l.t.Helper()
	out, err := l.cmd(l.t.Context(), append([]string{"exec", "--"}, argv...)...).Output()
	require.NoError(l.t, err, "%v", argv)
	return string(out)
}

// pulumi runs Pulumi and fails the test on an error, and on messages that a successful run should not print.
func (l *lab) pulumi(args ...string) string {
	l.t.Helper()
	return l.pulumiSays("", args...)
}

// pulumiSays is pulumi for a run that may print messages of a pattern.
func (l *lab) pulumiSays(expected string, args ...string) string {
	l.t.Helper()
	out := l.in(append([]string{"pulumi", "--non-interactive", "--color=never"}, args...)...)
	l.checkOutput(out, expected)
	return out
}

// checkOutput fails the test on messages that a successful run should not print. expected is a pattern of messages that it may print; ""
// means none.
func (l *lab) checkOutput(out, expected string) {
	l.t.Helper()
	args := []string{"check-output"}
	if expected != "" {
		args = append(args, "--expect", expected)
	}
	c := exec.CommandContext(l.t.Context(), l.command, args...)
	c.Stdin = strings.NewReader(out)
	said, err := c.CombinedOutput()
	require.NoError(l.t, err, "%s", said)
}

// pendingOperations is Pulumi's message in the run after a killed run; see docs/operations.md.
const pendingOperations = `^warning: Attempting to deploy or update resources with \d+ pending operations from previous deployment\.`

func (l *lab) status() status {
	l.t.Helper()
	out, err := l.cmd(l.t.Context(), "status", "--json").Output()
	require.NoError(l.t, err)
	var s status
	require.NoError(l.t, json.Unmarshal(out, &s))
	return s
}

// longest is the longest wait for a condition in the lab.
const longest = 5 * time.Minute

// eventually waits until ask returns true; what names the condition.
func (l *lab) eventually(what string, ask func() bool) {
	l.t.Helper()
	l.within(longest, what, ask)
}

// within waits for a time until ask returns true; what names the condition.
func (l *lab) within(limit time.Duration, what string, ask func() bool) {
	l.t.Helper()
	deadline, look := time.After(limit), time.NewTicker(100*time.Millisecond)
	defer look.Stop()
	for !ask() {
		select {
		case <-deadline:
			require.Fail(l.t, what, "not within %s", limit)
		case <-look.C:
		}
	}
}

// background is a command in the lab that runs in parallel to the test.
type background struct {
	lab     *lab
	command *exec.Cmd // outside the lab
	group   string    // process group inside the lab
	ended   chan error

	mu  sync.Mutex
	out bytes.Buffer
}

// Write adds to the output.
func (b *background) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.Write(p)
}

// said returns the output so far.
func (b *background) said() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.String()
}

// up starts `pulumi up`.
func (l *lab) up(stack string) *background {
	l.t.Helper()
	return l.background("pulumi", "--non-interactive", "--color=never", "up", "--yes", "--skip-preview", "--stack", stack)
}

// background starts a command in a process group of its own.
func (l *lab) background(argv ...string) *background {
	l.t.Helper()
	b := &background{lab: l, ended: make(chan error, 1)}
	reader, writer, err := os.Pipe()
	require.NoError(l.t, err)
	c := l.cmd(context.Background(), append([]string{"exec", "--", "setsid", "--wait", "sh", "-c", `echo "$$"; exec "$0" "$@"`}, argv...)...)
	c.Stdout, c.Stderr = writer, writer
	require.NoError(l.t, c.Start())
	b.command = c
	require.NoError(l.t, writer.Close())
	var group [32]byte
	n, err := reader.Read(group[:])
	require.NoError(l.t, err)
	b.group = strings.TrimSpace(string(group[:n]))
	go func() {
		_, _ = io.Copy(io.MultiWriter(b, l), reader) // ends when the last writer has closed
		b.ended <- c.Wait()
	}()
	return b
}

// kill kills Pulumi, and releases the stack's lock. Pulumi's plugins, which have process groups of their own, notice it late.
func (b *background) kill(stack string) {
	l := b.lab
	l.t.Helper()
	select {
	case err := <-b.ended:
		require.Fail(l.t, "pulumi ended before it could be killed", "%v\n%s", err, end(b.said()))
	default:
	}
	l.in("kill", "-KILL", "--", "-"+b.group)
	<-b.ended
	l.cancel(stack)
}

// cancel frees the lock of a stack whose run was killed, as docs/operations.md says.
func (l *lab) cancel(stack string) {
	l.t.Helper()
	cancel := []string{"pulumi", "--non-interactive", "--color=never", "cancel", "--yes", "--stack", stack}
	out, err := l.try(cancel...)
	if err != nil && strings.Contains(out, "failed to load checkpoint: EOF") {
		// The kill hit Pulumi while it wrote the attributes beside the state.
		l.in("sh", "-c", `find "${PULUMI_BACKEND_URL#file://}" -name "*.attrs" -empty -print -delete`)
		out, err = l.try(cancel...)
	}
	require.NoError(l.t, err, "%s", end(out))
}

// reaches waits until the run has reached a point. It fails the test if the run ends before.
func (b *background) reaches(point string, reached func() bool) {
	b.lab.t.Helper()
	b.reachesIn(longest, point, reached)
}

// reachesIn is reaches with another limit of time.
func (b *background) reachesIn(limit time.Duration, point string, reached func() bool) {
	l := b.lab
	l.t.Helper()
	l.within(limit, point, func() bool {
		select {
		case err := <-b.ended:
			require.Fail(l.t, "pulumi ended before "+point, "%v\n%s", err, end(b.said()))
		default:
		}
		return reached()
	})
}

// end waits until the run ends by itself, and returns its output.
func (b *background) end(longest time.Duration) (string, error) {
	b.lab.t.Helper()
	select {
	case err := <-b.ended:
		return b.said(), err
	case <-time.After(longest):
		require.Fail(b.lab.t, "pulumi does not end", "within %s\n%s", longest, end(b.said()))
		return "", nil
	}
}

// lasts fails the test if the run ends within a duration.
func (b *background) lasts(while time.Duration) {
	b.lab.t.Helper()
	select {
	case err := <-b.ended:
		require.Fail(b.lab.t, "pulumi ended", "%v\n%s", err, end(b.said()))
	case <-time.After(while):
	}
}

// end returns the last part of a long text, and after it the errors in the text: some readers see only the last lines.
func end(text string) string {
	if _, said, failed := strings.Cut(text, "\nDiagnostics:"); failed {
		text, _, _ = strings.Cut(said, "\nOutputs:") // Pulumi's outputs would take all the room
	}
	return text[max(0, len(text)-6000):] + errorsIn(text)
}

// errorsIn returns the lines of a text that tell of an error, each with those after it.
func errorsIn(text string) string {
	const after, most = 3, 2000
	var told strings.Builder
	left := 0
	for line := range strings.Lines(text) {
		if strings.Contains(line, "error: ") && !strings.Contains(line, "error: update failed") {
			left = after + 1
		}
		if left > 0 && told.Len() < most {
			told.WriteString(line[:min(len(line), most)])
		}
		left--
	}
	if told.Len() == 0 {
		return ""
	}
	return "\nErrors:\n" + told.String()
}

func TestEnd_TellsTheErrorsLast(t *testing.T) {
	said := "Updating\nDiagnostics:\n  crds-apply\n    error: it does not answer\n    try again\n" +
		strings.Repeat("  warning: pending\n", 500) + "    error: update failed\nOutputs:\n  a: 1\n"
	const told = "\nErrors:\n    error: it does not answer\n    try again\n  warning: pending\n  warning: pending\n"
	require.True(t, strings.HasSuffix(end(said), told), end(said))
	require.NotContains(t, end("Updating\n    error: update failed\n"), "Errors:")
}

// home returns the folder of the lab. It has the same path inside and outside.
func (l *lab) home() string {
	l.t.Helper()
	return strings.TrimSpace(l.in("sh", "-c", `echo "$SLIPWAY_LAB"`))
}

// stackFile returns the path of the lab's copy of a stack file, which Pulumi reads.
func (l *lab) stackFile(stack string) string {
	l.t.Helper()
	return filepath.Join(l.home(), "project", "Pulumi."+stack+".yaml")
}

// urns returns the URNs of the resources in a stack's state.
func urns(t *testing.T, l *lab, stack string) []string {
	t.Helper()
	return urnsIn(t, l.pulumi("stack", "export", "--stack", stack))
}

// urnsIn returns the URNs of the resources in an exported state.
func urnsIn(t *testing.T, exported string) []string {
	t.Helper()
	var state struct {
		Deployment struct {
			Resources []struct {
				URN string `json:"urn"`
			} `json:"resources"`
		} `json:"deployment"`
	}
	require.NoError(t, json.Unmarshal([]byte(exported), &state))
	var all []string
	for _, r := range state.Deployment.Resources {
		all = append(all, r.URN)
	}
	return all
}
