package picture

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/health/mesh"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/golden"
)

// canary is a secret in every place of the fixtures that may have one, and in the specs of the tests.
const canary = "CANARY-s3cret"

// read reads a file of testdata.
func read[T any](t *testing.T, name string, with func(*bytes.Reader) (T, error)) T {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	value, err := with(bytes.NewReader(content))
	require.NoError(t, err)
	return value
}

func readRun(t *testing.T, name string) *Run {
	t.Helper()
	return read(t, name, func(r *bytes.Reader) (*Run, error) { return ReadRun(r) })
}

// update is the update of testdata: events, state and spans.
func update(t *testing.T) Update {
	t.Helper()
	state := read(t, "up.state.json", func(r *bytes.Reader) (*State, error) { return ReadState(r) })
	u := Update{
		Run: readRun(t, "up.events.json"), State: state,
		Spans:   read(t, "up.spans.json", func(r *bytes.Reader) ([]Span, error) { return ReadSpans(r) }),
		Cluster: Cluster{Gate: Decode[gate.Spec](state.Output("gateSpec")), Mesh: Decode[mesh.Spec](state.Output("meshSpec"))},
	}
	for _, name := range []string{"gateReport", "meshReport"} {
		report := Decode[health.Report](state.Output(name))
		require.NotNil(t, report, name)
		u.Cluster.Found = append(u.Cluster.Found, *report)
	}
	return u
}

// failed is an update that failed at its gate.
func failed(t *testing.T) Update {
	t.Helper()
	return Update{Run: readRun(t, "failed.events.json")}
}

// closed is what a gate has found of a cluster in which a node fails.
func closed() Cluster {
	spec := &gate.Spec{
		Target: health.Target{Cluster: "infra", Kubeconfig: canary}, Talosconfig: canary,
		Nodes: []gate.Machine{
			{Name: "infra-cp-1", Role: "controlplane", Address: netip.MustParseAddr("10.25.11.11")},
			{Name: "infra-cp-2", Role: "controlplane", Address: netip.MustParseAddr("10.25.11.12")},
			{Name: "infra-worker-with-a-long-name-1", Role: "worker", Address: netip.MustParseAddr("2001:db8:25:11:1:2:3:2121")},
		},
	}
	results := []health.Result{
		{Check: gate.EtcdMembersName, Subject: "infra-cp-1", Verdict: health.Passed, Held: probe.Duration(time.Second)},
		{
			Check: gate.EtcdMembersName, Subject: "infra-cp-2", Verdict: health.Failed, Reason: "is a learner of etcd only, according to infra-cp-1",
			Evidence: []string{"its etcd is Running", `<script>alert("x")</script> password=` + canary},
			Command:  "talosctl etcd members; talosctl logs etcd",
		},
		{Check: "every declared node is Ready", Subject: "infra-cp-1", Verdict: health.Passed},
		{Check: "every declared node is Ready", Subject: "infra-cp-2", Verdict: health.Failed, Reason: "Ready is False"},
		{
			Check: "every declared node is Ready", Subject: "infra-worker-with-a-long-name-1", Verdict: health.Skipped, Blocked: true,
			Reason: "waits: no Cilium agent is Ready",
		},
	}
	target := health.Target{Cluster: "infra", StableFor: probe.Duration(400 * time.Millisecond)}
	report := health.NewReport("gate", target, health.End{
		Outcome: health.Closed, Results: results, Began: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Waited: time.Minute,
	}, 42)
	report.Results = results
	return Cluster{Gate: spec, Found: []health.Report{report}}
}

// pages are all pages of the tests, by the name of their golden file.
func pages(t *testing.T) map[string]string {
	t.Helper()
	var up, fail, found bytes.Buffer
	require.NoError(t, update(t).Write(&up))
	require.NoError(t, failed(t).Write(&fail))
	require.NoError(t, closed().Write(&found))
	return map[string]string{"up.html": up.String(), "failed.html": fail.String(), "gate.html": found.String()}
}

func TestPages_AreAsRecorded(t *testing.T) {
	for name, page := range pages(t) {
		golden.File(t, "testdata/"+name, page)
	}
}

func TestFixtures_AreEventsOfTheEngine(t *testing.T) {
	looked := 0
	for _, name := range []string{"up.events.json", "failed.events.json"} {
		content, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		for line := range strings.Lines(string(content)) {
			decoder := json.NewDecoder(strings.NewReader(line))
			decoder.DisallowUnknownFields()
			require.NoError(t, decoder.Decode(new(apitype.EngineEvent)), line)
			looked++
		}
	}
	assert.Greater(t, looked, 50)
}

func TestPages_ShowNoSecret(t *testing.T) {
	for _, name := range []string{"up.events.json", "failed.events.json", "up.state.json"} {
		content, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		assert.Greater(t, strings.Count(string(content), canary), 10, "%s has the secret in many places", name)
	}
	for name, page := range pages(t) {
		assert.NotContains(t, page, canary, name)
		assert.NotContains(t, page, "[secret]", "%s shows no value at all", name)
	}
}

func TestRun_TellsWhatEachResourceDid(t *testing.T) {
	run := readRun(t, "up.events.json")
	assert.True(t, run.Complete)
	assert.False(t, run.Failed)
	assert.Equal(t, 40*time.Second, run.Ended.Sub(run.Began))
	byName := map[string]*Resource{}
	for _, r := range run.Resources {
		byName[r.Name] = r
	}
	assert.Len(t, byName, 13)
	boot := byName["infra-bootstrap"]
	want := Step{Op: "create", From: run.Began.Add(12 * time.Second), To: run.Began.Add(20 * time.Second), Ended: true}
	assert.Equal(t, []Step{want}, boot.Steps)
	assert.Equal(t, []string{"waits for etcd"}, boot.Said)
	assert.Empty(t, byName["infra-disks"].Steps, "it was left as it is")
	assert.True(t, byName["infra-cilium"].Component)
	assert.False(t, byName["infra-cilium"].Unfinished(), "a component has no end")
}

func TestRun_OfAReplacementHasAllItsSteps(t *testing.T) {
	const urn = `"urn":"urn:pulumi:a::p::t:t:T::x","type":"t:t:T","new":{"custom":true}`
	var log strings.Builder
	for _, event := range []string{
		`"timestamp":10,"resourcePreEvent":{"metadata":{"op":"create-replacement",` + urn + `}}`,
		`"timestamp":14,"resOutputsEvent":{"metadata":{"op":"create-replacement",` + urn + `}}`,
		`"timestamp":14,"resourcePreEvent":{"metadata":{"op":"replace",` + urn + `}}`,
		`"timestamp":14,"resOutputsEvent":{"metadata":{"op":"replace",` + urn + `}}`,
		`"timestamp":20,"resourcePreEvent":{"metadata":{"op":"delete-replaced",` + urn + `}}`,
		`"timestamp":21,"resOutputsEvent":{"metadata":{"op":"delete-replaced",` + urn + `}}`,
		`"timestamp":21,"resourcePreEvent":{"metadata":{"op":"refresh",` + urn + `}}`,
		`"timestamp":23,"resOutputsEvent":{"metadata":{"op":"update",` + urn + `}}`,
	} {
		log.WriteString("{" + event + "}\n")
	}
	run, err := ReadRun(strings.NewReader(log.String()))
	require.NoError(t, err)
	require.Len(t, run.Resources, 1)
	r := run.Resources[0]
	assert.Equal(t, "replaced, refreshed", did(r))
	assert.Equal(t, 13*time.Second, r.To().Sub(r.From()))
	assert.Len(t, r.Steps, 4)
	assert.False(t, r.Unfinished())
}

func TestRun_ThatWasKilledNamesWhatDidNotEnd(t *testing.T) {
	content, err := os.ReadFile("testdata/up.events.json")
	require.NoError(t, err)
	at := bytes.Index(content, []byte(`"summaryEvent"`))
	run, err := ReadRun(bytes.NewReader(content[:at-40]))
	require.NoError(t, err)
	assert.False(t, run.Complete)
	assert.True(t, run.Cut)

	lines := bytes.SplitAfter(content, []byte("\n"))
	run, err = ReadRun(bytes.NewReader(bytes.Join(lines[:18], nil)))
	require.NoError(t, err)
	var open []string
	for _, r := range run.Resources {
		if r.Unfinished() {
			open = append(open, r.Name)
		}
	}
	assert.Equal(t, []string{"infra-bootstrap"}, open)
	var page bytes.Buffer
	require.NoError(t, Update{Run: run}.Write(&page))
	assert.Contains(t, page.String(), "not finished when the log ends")
	assert.Contains(t, page.String(), "did not end in this log")
}

func TestReaders_RefuseWhatIsNotTheirs(t *testing.T) {
	for text, want := range map[string]string{
		"":            "event log: has no event about a resource; give the file of pulumi up --event-log",
		"{}\n":        "event log: has no event about a resource",
		"{}\nx\n{}\n": "event log: line 2 is not an event of Pulumi's engine",
	} {
		_, err := ReadRun(strings.NewReader(text))
		assert.ErrorContains(t, err, want)
	}
	for _, text := range []string{"", "{}", `{"deployment":"` + canary + `"}`} {
		_, err := ReadState(strings.NewReader(text))
		require.ErrorContains(t, err, "state: is not the output of pulumi stack export; give its file")
		assert.NotContains(t, err.Error(), canary)
	}
	_, err := ReadSpans(strings.NewReader("{}\nx\n\n" + `{"what":"a","from":"2026-01-02T03:04:05Z","to":"2026-01-02T03:04:04Z"}`))
	require.ErrorContains(t, err, `spans: line 1: write {"what":"boot"`)
	require.ErrorContains(t, err, "spans: line 2: invalid character")
	assert.ErrorContains(t, err, "spans: line 4: write", "all problems are reported")
}

func TestCriticalPath_FollowsTheDependencyThatEndedLast(t *testing.T) {
	u := update(t)
	u.State.refine(u.Run)
	var names []string
	var gaps []time.Duration
	for _, h := range criticalPath(u.Run, u.State) {
		names, gaps = append(names, h.Name), append(gaps, h.Gap)
	}
	assert.Equal(t, []string{"infra-secrets", "infra-cp-3", "infra-bootstrap", "cilium", "infra-gate-probe"}, names)
	assert.Equal(t, []time.Duration{7 * time.Second, 100 * time.Millisecond, 0, 250 * time.Millisecond, 400 * time.Millisecond}, gaps)
	assert.Nil(t, criticalPath(u.Run, nil), "without a state it is not known")
}

func TestCriticalPath_EndsBeforeWhatIsNotInTheState(t *testing.T) {
	u := failed(t)
	u.State = update(t).State
	for urn := range u.State.dependencies {
		if strings.HasSuffix(urn, "::infra-gate-probe") {
			delete(u.State.dependencies, urn)
		}
	}
	path := criticalPath(u.Run, u.State)
	require.Len(t, path, 4)
	assert.Equal(t, "cilium", path[3].Name)
	assert.Contains(t, strings.Join(u.notes(), "\n"), "the critical path ends before it")
}

func TestRefine_TakesOnlyTimesThatFitTheEvents(t *testing.T) {
	u := update(t)
	for urn := range u.State.modified {
		u.State.modified[urn] = u.State.modified[urn].Add(-time.Hour) // of an earlier update
	}
	before := readRun(t, "up.events.json")
	u.State.refine(u.Run)
	for i, r := range u.Run.Resources {
		assert.Equal(t, before.Resources[i].Steps, r.Steps, r.Name)
	}
}

func TestSpans_ThatOverlapCountOnce(t *testing.T) {
	at := func(s float64) time.Time { return time.Unix(0, int64(s*1e9)) }
	spans := []Span{
		{What: "a", From: at(5), To: at(6)}, {What: "a", From: at(1), To: at(3)},
		{What: "b", From: at(2), To: at(4)}, {What: "b", From: at(0), To: at(1)},
	}
	assert.Equal(t, 5*time.Second, covered(spans, at(0), at(10)))
	assert.Equal(t, 1500*time.Millisecond, covered(spans, at(3.5), at(10)))
	assert.Zero(t, covered(spans, at(7), at(10)))
	all := works(spans)
	require.Len(t, all, 2)
	assert.Equal(t, work{What: "b", Times: 2, Busy: 3 * time.Second, Longest: spans[2]}, all[0])
	assert.Equal(t, work{What: "a", Times: 2, Busy: 3 * time.Second, Longest: spans[1]}, all[1])
}

func TestNodes_ShowWhatTheGateHasFound(t *testing.T) {
	states := func(c Cluster) map[string]string {
		found := map[string]string{}
		for _, group := range c.nodes().Groups {
			for _, node := range group.Boxes {
				found[node.Name] = string(node.State) + ": " + node.Says + ": " + node.Etcd
			}
		}
		return found
	}
	assert.Equal(t, map[string]string{
		"infra-cp-1":                      "good: 2 checks passed: etcd member",
		"infra-cp-2":                      "bad: 2 checks fail: is a learner of etcd only, according to infra-cp-1: no voting etcd member",
		"infra-worker-with-a-long-name-1": "unknown: 1 checks wait for another: ",
	}, states(closed()))
	open := update(t).Cluster
	assert.Equal(t, "good: all checks passed: etcd member", states(open)["infra-cp-3"])
	assert.Equal(t, "unknown: joins later, was not judged: ", states(open)["infra-worker-2"])
	open.Found = nil
	assert.Equal(t, "unknown: no gate has judged it: etcd not judged", states(open)["infra-cp-3"])
	assert.Nil(t, Cluster{}.nodes())
}

func TestMesh_ShowsPeersAsConnectedAbsentOrNot(t *testing.T) {
	c := update(t).Cluster
	words := func() map[string]string {
		found := map[string]string{}
		for _, peer := range c.mesh().Peers {
			found[peer.Name] = peer.Says
		}
		return found
	}
	assert.Equal(t, map[string]string{"apps": "connected", "edge": "absent"}, words())
	c.Found[1].Problems = append(c.Found[1].Problems, health.Result{Subject: "apps on infra-cp-1", Verdict: health.Failed})
	assert.Equal(t, map[string]string{"apps": "not connected", "edge": "absent"}, words())
	c.Found = nil
	assert.Equal(t, map[string]string{"apps": "not judged", "edge": "not judged"}, words())
}

func TestGates_OfAnEarlierUpdateSaySo(t *testing.T) {
	u := update(t)
	p := u.page()
	require.Len(t, p.Gates, 2)
	assert.Empty(t, p.Gates[0].When)
	assert.Equal(t, "38.1 s", p.Gates[0].Conditions[2].DuringUp)
	assert.Equal(t, "It did not run in this update; the report is that of 2026-01-01 03:04:05 UTC.", p.Gates[1].When)
	assert.Empty(t, p.Gates[1].Conditions[0].DuringUp)
}
