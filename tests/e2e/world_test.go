//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLab_TwoRunInParallelAndAreIsolated(t *testing.T) {
	a, b := startLab(t, "one"), startLab(t, "two")
	a.must("fault", "git-refused")
	require.Contains(t, a.must("fault"), "git-refused")
	require.Contains(t, b.must("fault"), "no fault is on")
	version := []string{"sh", "-c", `curl --silent --fail --header "Authorization: PVEAPIToken=$PROXMOX_VE_API_TOKEN" ` +
		`https://pve.home.arpa:8006/api2/json/version`}
	require.Contains(t, a.in(version...), "release")
	require.Contains(t, b.in(version...), "release")
}

func TestLab_CannotReachTheInternet(t *testing.T) {
	l := startLab(t, "closed")
	_, err := l.try("curl", "--silent", "--max-time", "5", "https://example.com")
	require.Error(t, err)
	require.NotContains(t, l.in("ip", "-o", "link"), "eth0")
}

func TestLab_NeverWritesToTheCheckout(t *testing.T) {
	before := checkout(t)
	l := startLab(t, "readonly")
	l.pulumi("config", "set", "--stack", "infra", "--path", "slipway:readiness.timeout", "1m")
	require.Equal(t, before, checkout(t))
	folder, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	_, err = l.try("sh", "-c", `cd "$0" && pulumi config set --stack infra --path slipway:readiness.timeout 1m`, folder)
	require.Error(t, err, "Pulumi in the checkout's own folder")
	require.Equal(t, before, checkout(t))
}

// Most editors save to a new file and rename it; `sed -i` and `git checkout` do, too.
func TestLab_SeesAStackFileThatWasReplacedInEveryLabOfACheckout(t *testing.T) {
	project := smallProject(t)
	path := filepath.Join(project, "Pulumi.infra.yaml")
	labs := []*lab{startLabOf(t, project, "first"), startLabOf(t, project, "second")}
	for _, timeout := range []string{"11m", "12m"} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		changed := regexp.MustCompile(`(?m)^  slipway:readiness:.*\n(    .*\n)*`).ReplaceAllString(string(text), "") +
			"  slipway:readiness: {timeout: " + timeout + "}\n"
		require.NoError(t, os.WriteFile(path+".new", []byte(changed), 0o600))
		require.NoError(t, os.Rename(path+".new", path))
		for _, l := range labs {
			require.Equal(t, timeout, strings.TrimSpace(l.pulumi("config", "get", "--stack", "infra", "--path", "slipway:readiness.timeout")))
			l.pulumi("config", "get", "--stack", "infra", "slipway:gitPassword") // the lab's passphrase decrypts it
		}
		now, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, changed, string(now), "the lab wrote to the checkout")
	}
}

// smallProject returns a project with the stack files of this one, and programs that compile at once and do nothing.
func smallProject(t *testing.T) string {
	t.Helper()
	project := t.TempDir()
	put := func(name string, text []byte) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(project, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(project, name), text, 0o600))
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "Pulumi*.yaml"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 3)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		put(filepath.Base(file), text)
	}
	put("go.mod", []byte("module example.test/small\n"))
	for _, program := range []string{"main.go", "cmd/slipway-probe/main.go"} {
		put(program, []byte("package main\n\nfunc main() {}\n"))
	}
	runGit(t, "-C", project, "init", "--quiet", "--initial-branch", "main")
	runGit(t, "-C", project, "add", ".")
	runGit(t, "-C", project, "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "--message", "small")
	return project
}

// checkout returns a stack file's content and the status of the working tree.
func checkout(t *testing.T) string {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("..", "..", "Pulumi.infra.yaml"))
	require.NoError(t, err)
	state, err := exec.CommandContext(t.Context(), "git", "status", "--porcelain").Output()
	require.NoError(t, err)
	return string(file) + string(state)
}

func TestLab_EndsWithItsParentEvenByKill(t *testing.T) {
	name := fmt.Sprintf("orphan-%d", os.Getpid())
	parent := exec.Command(os.Getenv("SLIPWAY_LAB_COMMAND"), "--name", name, "run")
	require.NoError(t, parent.Start())
	l := &lab{t: t, command: os.Getenv("SLIPWAY_LAB_COMMAND"), name: name}
	t.Cleanup(func() { _, _ = l.run("clean") })
	l.eventually("the lab runs", func() bool {
		out, err := l.run("status", "--json")
		return err == nil && strings.Contains(out, "pve")
	})
	space := namespaceOf(t, l)
	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait() // killed
	require.Eventually(t, func() bool { return len(processesIn(t, space)) == 0 }, 10*time.Second, 50*time.Millisecond,
		"processes outlive the lab's parent")
}

// namespaceOf returns the network namespace of a lab.
func namespaceOf(t *testing.T, l *lab) string {
	t.Helper()
	return strings.TrimSpace(l.in("readlink", "/proc/self/ns/net"))
}

func processesIn(t *testing.T, space string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/ns/net")
	require.NoError(t, err)
	require.NotEmpty(t, links)
	var inside []string
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil && at == space {
			inside = append(inside, link)
		}
	}
	return inside
}
