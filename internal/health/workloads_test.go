package health

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/probe"
)

// aRelease is a healthy release of one Deployment with two pods, changed.
func aRelease(change func(*Workload, []Pod)) *Workloads {
	labels := map[string]string{"app": "dns", "pod-template-hash": "x"}
	set := Workload{
		Kind: "Deployment", Namespace: "kube-system", Name: "coredns", Release: "coredns", Selector: map[string]string{"app": "dns"},
		Observed: true, Desired: 2, Updated: 2,
	}
	pods := []Pod{
		{Namespace: "kube-system", Name: "coredns-a", Labels: labels, Node: "cp-1", Phase: "Running", Ready: true},
		{Namespace: "kube-system", Name: "coredns-b", Labels: labels, Node: "cp-2", Phase: "Running", Ready: true},
		{Namespace: "kube-system", Name: "another", Labels: map[string]string{"app": "other"}, Phase: "Failed"},
	}
	change(&set, pods)
	seen := &Workloads{Sets: map[Place]Seen[Workload]{}, Pods: map[string]Seen[Pod]{"kube-system": {Synced: true, Items: pods}}, Samples: map[string]Accepted{}}
	for _, kind := range WorkloadKinds {
		seen.Sets[Place{Kind: kind, Namespace: "kube-system"}] = Seen[Workload]{Synced: true}
	}
	seen.Sets[Place{Kind: "Deployment", Namespace: "kube-system"}] = Seen[Workload]{Synced: true, Items: []Workload{set}}
	return seen
}

func theReleases() *WorkloadsSpec {
	return &WorkloadsSpec{Cluster: "infra", Kubeconfig: "x", Releases: []Release{{Namespace: "kube-system", Name: "coredns"}}}
}

func TestWorkloads_RunOnlyWhenTheNewestSpecIsRolledOutAndReady(t *testing.T) {
	assert.True(t, WorkloadsRun(theReleases(), aRelease(func(*Workload, []Pod) {})))
	for want, change := range map[string]func(*Workload, []Pod){
		"its controller has not seen the newest spec yet": func(w *Workload, _ []Pod) { w.Observed = false },
		"1 of 2 pods are of the newest spec":              func(w *Workload, _ []Pod) { w.Updated = 1 },
		"1 pods of an older spec are still there":         func(w *Workload, _ []Pod) { w.Old = 1 },
		"1 of 2 pods are Ready; pod kube-system/coredns-b is not scheduled: 0/1 nodes are available": func(_ *Workload, pods []Pod) {
			pods[1].Node, pods[1].Ready, pods[1].Unscheduled = "", false, "0/1 nodes are available"
		},
		"1 of 2 pods are Ready": func(_ *Workload, pods []Pod) { pods[1].Deleting = true },
	} {
		results := Evaluate(WorkloadsChecks(theReleases()), aRelease(change))
		require.Equal(t, Failed, results[0].Verdict, want)
		assert.Equal(t, want, results[0].Reason)
		assert.NotEmpty(t, results[0].Command)
		assert.NotEmpty(t, results[0].Ask, "what its controller met with is looked up")
	}
}

func TestWorkloads_SayWhyNoPodsCanBeMade(t *testing.T) {
	results := Evaluate(WorkloadsChecks(theReleases()), aRelease(func(w *Workload, _ []Pod) {
		w.Updated, w.Stuck = 0, `pods "x" is forbidden: violates PodSecurity "baseline:latest"`
	}))
	assert.Contains(t, strings.Join(results[0].Evidence, "\n"), "violates PodSecurity")
}

func TestWorkloads_SamplesWaitForWhatAnswersForThem(t *testing.T) {
	spec := theReleases()
	spec.Accepts = []Sample{{Resource: "certificates", Object: json.RawMessage(`{"kind":"Certificate","metadata":{"namespace":"cert-manager","name":"x"}}`)}}
	sample := func(seen *Workloads) Result { return Evaluate(WorkloadsChecks(spec), seen)[1] }

	broken := aRelease(func(w *Workload, _ []Pod) { w.Updated = 0 })
	assert.True(t, sample(broken).Blocked)
	well := aRelease(func(*Workload, []Pod) {})
	assert.True(t, sample(well).Unseen)
	well.Samples["Certificate cert-manager/x"] = Accepted{Asked: true, Err: &Broken{Reason: "no endpoints available"}}
	assert.Equal(t, "is not taken: no endpoints available", sample(well).Reason)
	well.Samples["Certificate cert-manager/x"] = Accepted{Asked: true}
	assert.Equal(t, Passed, sample(well).Verdict)
}

func TestWorkloadsSpec_ReportsEveryProblemAtOnce(t *testing.T) {
	err := WorkloadsSpec{
		Releases: []Release{{"kube-system", "coredns"}, {"kube-system", "coredns"}, {"", "x"}},
		Accepts:  []Sample{{Object: json.RawMessage(`{"kind":"Certificate"}`)}, {Object: json.RawMessage(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}`)}},
		Timeout:  probe.Duration(-time.Second),
	}.Validate()
	for _, problem := range []string{
		"cluster: is empty", "kubeconfig: is empty", "releases[1]: kube-system/coredns is there twice", `releases[2]: "/x" is half a name`,
		"accepts[0].object: lacks apiVersion, kind or metadata.name", "accepts[1].resource: is empty; give the plural of Pod", "timeout: -1s",
	} {
		assert.ErrorContains(t, err, problem)
	}
}

func TestWorkloadsSpec_ComesBackAsItWasWritten(t *testing.T) {
	spec := *theReleases()
	spec.Accepts = []Sample{{Resource: "certificates", Object: json.RawMessage(`{"apiVersion":"a/v1","kind":"Certificate","metadata":{"name":"x"}}`)}}
	text, err := spec.Encode()
	require.NoError(t, err)
	read := new(WorkloadsSpec)
	require.NoError(t, probe.Read(strings.NewReader(text), read))
	spec.SetDefaults()
	assert.Equal(t, &spec, read)
}
