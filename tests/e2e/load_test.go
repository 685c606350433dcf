//go:build e2e

package e2e

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/e2e/served"
)

// load asks the API through the virtual IP, and watches the cluster and a workload with a PodDisruptionBudget.
type load struct {
	lab    *lab
	folder string
	home   string // folder of the lab
	done   chan struct{}
}

// loadScript writes the files of served.Notes until a file appears: answers ten times a second, everything else about once a second. One
// request that is lost takes less than a second, so that it alone is no outage.
const loadScript = `cd "$1"
see() { echo "$(date +%s%3N) $(kubectl --context=admin@infra --request-timeout=2s get "$@" 2>/dev/null)"; }
ask() { for i in $(seq 1 36000); do [ -e stop ] && break
  echo "$(date +%s%3N) $(curl --insecure --silent --max-time 0.8 --output /dev/null --write-out '%{http_code}' "$2")" >> "$1"
  sleep 0.1; done; }
ask api "$2" & ask control "$5" &
for i in $(seq 1 7200); do [ -e stop ] && break
  see nodes --output=jsonpath="$3" >> nodes
  see --namespace=kube-system pods --selector=tier=control-plane --output=jsonpath="$4" >> statics
  see poddisruptionbudget steady --output=jsonpath='{.status.currentHealthy} {.status.desiredHealthy}' >> budget
  sleep 0.5; done; wait`

// What the load notes of all nodes, and of all static pods of control planes.
const (
	nodeStates = `{range .items[*]}{.metadata.name}={.spec.unschedulable}={.status.conditions[?(@.type=="Ready")].status}` +
		`={.status.nodeInfo.kubeletVersion} {end}`
	staticStates = `{range .items[*]}{.metadata.labels.k8s-app}={.spec.containers[0].image}` +
		`={.status.conditions[?(@.type=="Ready")].status} {end}`
)

// controlServer is the lab's Git host: no change of a cluster concerns it.
const controlServer = "https://git.home.arpa/"

// longestAway is how long the API of three control planes may be away for a change.
const longestAway = time.Second

// mayBeAway are the parts of which that is not true, with the reason.
var mayBeAway = map[string]string{
	"the first control plane is dead, and is replaced": "the virtual IP moves once the dead machine's lease has ended",
}

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
	load := &load{lab: l, folder: folder, home: l.home(), done: make(chan struct{})}
	c := l.cmd(t.Context(), "exec", "--", "sh", "-c", loadScript, "load", folder, "https://10.25.11.10:6443/readyz", nodeStates, staticStates,
		controlServer)
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

// report checks how the cluster has served since a part of the test began.
func (o *load) report(t *testing.T, part string, since time.Time) {
	t.Helper()
	var seen served.Report
	require.Eventually(t, func() bool { // a part may have ended before the next sample
		seen = o.served(t, since)
		return seen.Answered > 0 && seen.Pods > 0 && seen.Samples > 0 && seen.Statics > 0 && seen.Controls > 0
	}, time.Minute, 200*time.Millisecond, "the API was not asked, or it did not count pods, nodes and static pods")
	t.Log(seen)
	if busy := processes(t); seen.Gone > longestAway && busy > 4*float64(runtime.NumCPU()) {
		t.Logf("not judged: the API was away for %s at a load of %.1f", seen.Gone, busy) // it also pauses while nothing changes
	} else if mayBeAway[part] == "" {
		assert.LessOrEqual(t, seen.Gone, longestAway, "%s: the API was away", part)
	}
	assert.Less(t, seen.Silence, 30*time.Second, "the API was away") // a new API server takes long on a busy machine
	assert.Zero(t, seen.BelowBudget, "the PodDisruptionBudget was not kept")
	assert.Zero(t, seen.WithoutQuorum, "etcd lost its quorum")
	assert.Zero(t, seen.Stalled, "volumes of Ceph stalled")
	assert.Zero(t, seen.TwoDown, "two control planes were down at once")
	assert.Zero(t, seen.Skewed, "a part was newer than an API server")
}

// oneAway checks that never more than one node was cordoned or not Ready since a time, and that each of the five was.
func (o *load) oneAway(t *testing.T, since time.Time) {
	t.Helper()
	seen := o.served(t, since)
	assert.Equal(t, 1, seen.MostAway, "nodes that were away at once")
	assert.Len(t, seen.Away, 5, "nodes that were seen in their turn")
}

// served reads what was noted since a time.
func (o *load) served(t *testing.T, since time.Time) served.Report {
	t.Helper()
	var notes served.Notes
	for path, to := range map[string]*io.Reader{
		filepath.Join(o.folder, "api"): &notes.API, filepath.Join(o.folder, "control"): &notes.Control,
		filepath.Join(o.folder, "budget"): &notes.Budget,
		filepath.Join(o.folder, "nodes"):  &notes.Nodes, filepath.Join(o.folder, "statics"): &notes.Statics,
		filepath.Join(o.home, "logs", "lab.log"): &notes.Log, filepath.Join(o.home, "logs", "machines.json"): &notes.Spans,
	} {
		file, err := os.Open(path)
		require.NoError(t, err)
		defer func() { _ = file.Close() }()
		*to = file
	}
	seen, err := served.Of(notes, since, time.Now())
	require.NoError(t, err)
	return seen
}
