//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// load asks the API through the virtual IP, and watches how many pods of a workload are available.
type load struct {
	lab    *lab
	folder string
	done   chan struct{}
}

// loadScript asks ten times a second whether the API answers, and how many pods are available, until a file appears. Each line of the first
// file is a time in milliseconds and the status code of HTTP, 000 for no answer; of the third one, a time and the states of the nodes.
const loadScript = `cd "$1"; (for i in $(seq 1 36000); do [ -e stop ] && break
  echo "$(date +%s%3N) $(curl --insecure --silent --max-time 1 --output /dev/null --write-out '%{http_code}' "$2")" >> api; sleep 0.1; done) &
for i in $(seq 1 7200); do [ -e stop ] && break
  kubectl --context=admin@infra --request-timeout=2s get poddisruptionbudget steady --output=jsonpath='{.status.currentHealthy}{"\n"}' >> pods 2>/dev/null
  echo "$(date +%s%3N) $(kubectl --context=admin@infra --request-timeout=2s get nodes --output=jsonpath="$3" 2>/dev/null)" >> nodes
  sleep 0.5; done; wait`

// nodeStates prints NAME=UNSCHEDULABLE=READY for all nodes.
const nodeStates = `{range .items[*]}{.metadata.name}={.spec.unschedulable}={.status.conditions[?(@.type=="Ready")].status} {end}`

const workload = `{"apiVersion": "v1", "kind": "List", "items": [
{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "steady", "namespace": "default"},
 "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "steady"}}}},
{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "steady", "namespace": "default"},
 "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "steady"}}, "template": {"metadata": {"labels": {"app": "steady"}},
  "spec": {"containers": [{"name": "steady", "image": "registry.k8s.io/pause:3.10"}]}}}}]}`

func startLoad(l *lab) *load {
	t := l.t
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "workload.json")
	require.NoError(t, os.WriteFile(file, []byte(workload), 0o600))
	l.kubectl("apply", "--filename="+file)
	l.kubectl("wait", "--for=condition=Available", "--timeout=2m", "deployment/steady")
	l.kubectl("wait", "--for=jsonpath={.status.currentHealthy}=3", "--timeout=2m", "poddisruptionbudget/steady")
	load := &load{lab: l, folder: folder, done: make(chan struct{})}
	c := l.cmd(t.Context(), "exec", "--", "sh", "-c", loadScript, "load", folder, "https://10.25.11.10:6443/readyz", nodeStates)
	require.NoError(t, c.Start())
	go func() {
		defer close(load.done)
		_ = c.Wait()
	}()
	t.Cleanup(load.end)
	return load
}

// end ends the load. It may be called twice.
func (o *load) end() {
	_ = os.WriteFile(filepath.Join(o.folder, "stop"), nil, 0o600)
	<-o.done
}

// report checks what the load has seen since a time: the budget was kept, and the API was never away for long.
func (o *load) report(t *testing.T, since time.Time) {
	t.Helper()
	asked, answered, gap := o.answers(t, since)
	t.Logf("the API answered %d of %d times, and was silent for at most %s", answered, asked, gap.Round(10*time.Millisecond))
	assert.Less(t, gap, 30*time.Second, "the API was away") // a new API server takes long on a busy machine
	fewest := 3
	text, err := os.ReadFile(filepath.Join(o.folder, "pods"))
	require.NoError(t, err)
	lines := strings.Fields(string(text))
	require.NotEmpty(t, lines)
	for _, line := range lines {
		healthy, err := strconv.Atoi(line)
		require.NoError(t, err)
		fewest = min(fewest, healthy)
	}
	assert.GreaterOrEqual(t, fewest, 2, "the PodDisruptionBudget was not kept")
}

// oneAway checks that never more than one node was cordoned or not Ready since a time, and that one was.
func (o *load) oneAway(t *testing.T, since time.Time) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(o.folder, "nodes"))
	require.NoError(t, err)
	turns := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if at, err := strconv.ParseInt(words[0], 10, 64); err != nil || at < since.UnixMilli() {
			continue
		}
		var away []string
		for _, state := range words[1:] {
			if name, rest, _ := strings.Cut(state, "="); rest != "=True" {
				away = append(away, state)
				turns[name] = true
			}
		}
		assert.LessOrEqual(t, len(away), 1, "%s", line)
	}
	assert.Len(t, turns, 5, "nodes that were seen in their turn")
}

// answers counts the answers since a time, and returns the longest time between two of them.
func (o *load) answers(t *testing.T, since time.Time) (asked, answered int, gap time.Duration) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(o.folder, "api"))
	require.NoError(t, err)
	last := since.UnixMilli()
	for line := range strings.Lines(string(text)) {
		var at int64
		var code string
		if _, err := fmt.Sscan(line, &at, &code); err != nil || at < since.UnixMilli() {
			continue
		}
		asked++
		if code == "000" {
			continue
		}
		answered++
		gap = max(gap, time.Duration(at-last)*time.Millisecond)
		last = at
	}
	require.Positive(t, asked)
	return asked, answered, gap
}
