package workloads

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
	"github.com/slipway-platform/slipway/internal/probe"
)

// aRelease returns a healthy release of one Deployment with two pods, after a change.
func aRelease(change func(*kube.Workload, []kube.Pod)) *Cluster {
	labels := map[string]string{"app": "dns", "pod-template-hash": "x"}
	set := kube.Workload{
		Kind: "Deployment", Namespace: "kube-system", Name: "coredns", Release: "coredns", Selector: map[string]string{"app": "dns"},
		Observed: true, Desired: 2, Updated: 2,
	}
	pods := []kube.Pod{
		{Namespace: "kube-system", Name: "coredns-a", Labels: labels, Node: "cp-1", Phase: "Running", Ready: true},
		{Namespace: "kube-system", Name: "coredns-b", Labels: labels, Node: "cp-2", Phase: "Running", Ready: true},
		{Namespace: "kube-system", Name: "another", Labels: map[string]string{"app": "other"}, Phase: "Failed"},
	}
	change(&set, pods)
	seen := &Cluster{Sets: map[Place]health.Seen[kube.Workload]{},
		Pods: map[string]health.Seen[kube.Pod]{"kube-system": {Synced: true, Items: pods}}, Samples: map[string]Answer{}}
	for _, kind := range kube.Kinds {
		seen.Sets[Place{Kind: kind, Namespace: "kube-system"}] = health.Seen[kube.Workload]{Synced: true}
	}
	seen.Sets[Place{Kind: "Deployment", Namespace: "kube-system"}] = health.Seen[kube.Workload]{Synced: true, Items: []kube.Workload{set}}
	return seen
}

func theReleases() *Spec {
	return &Spec{Target: health.Target{Cluster: "infra", Kubeconfig: "x"}, Releases: []Release{{Namespace: "kube-system", Name: "coredns"}}}
}

// A dead kubelet neither replaces the pod of a DaemonSet nor reports it Ready.
func TestWorkloads_ThePodOfADaemonSetOnANodeThatIsLeftOutIsNotMissed(t *testing.T) {
	seen := aRelease(func(w *kube.Workload, pods []kube.Pod) { w.Updated, pods[1].Ready = 1, false })
	deployment := Place{Kind: "Deployment", Namespace: "kube-system"}
	sets := seen.Sets[deployment]
	seen.Sets[deployment] = health.Seen[kube.Workload]{Synced: true}
	sets.Items[0].Kind = "DaemonSet"
	seen.Sets[Place{Kind: "DaemonSet", Namespace: "kube-system"}] = sets
	assert.False(t, Run(theReleases(), seen))
	spec := theReleases()
	spec.Skip = []cluster.SkippedNode{{Name: "cp-2", Reason: "waits for a disk"}}
	assert.True(t, Run(spec, seen))
	seen.Pods["kube-system"].Items[0].Ready = false
	assert.False(t, Run(spec, seen), "that of another node is missed")

	sets.Items[0].Updated = 0
	results := rolledOut.Judge(spec, seen)
	require.Len(t, results, 1)
	assert.Contains(t, results[0].Reason, "0 of 1 pods are of the newest spec; if no more come, its pods on nodes that are left out "+
		"block the others: kubectl delete node cp-2")
}

func TestWorkloads_OneThatReplacesNoPodsByItselfIsNamedWithTheRemedy(t *testing.T) {
	seen := aRelease(func(w *kube.Workload, _ []kube.Pod) { w.Kind, w.Updated, w.OnDelete = "StatefulSet", 1, true })
	results := rolledOut.Judge(theReleases(), seen)
	require.Len(t, results, 1)
	assert.Equal(t, "1 of 2 pods are of the newest spec; its update strategy is OnDelete, so a former pod stays until somebody deletes it: "+
		"delete one after the other, or set RollingUpdate", results[0].Reason)
}

// The kubelet of a node that is left out may work. Its pod of the newest spec is no pod of another node.
func TestWorkloads_ThePodOfANodeThatIsLeftOutCountsForNoOtherNode(t *testing.T) {
	deployment, daemonSet := Place{Kind: "Deployment", Namespace: "kube-system"}, Place{Kind: "DaemonSet", Namespace: "kube-system"}
	spec := theReleases()
	spec.Skip = []cluster.SkippedNode{{Name: "cp-2", Reason: "waits for a disk"}}
	of := func(generation string) map[string]string {
		return map[string]string{"app": "dns", "pod-template-generation": generation}
	}
	// Each case has the pod of cp-1, which stays, before the pods of cp-2.
	for name, one := range map[string]struct {
		desired, updated int
		generations      []string
		runs             bool
	}{
		"only the one left out is of the newest spec":   {desired: 2, updated: 1, generations: []string{"1", "2"}},
		"only the other is of the newest spec":          {desired: 2, updated: 1, generations: []string{"2", "1"}, runs: true},
		"both are of the newest spec":                   {desired: 2, updated: 2, generations: []string{"2", "2"}, runs: true},
		"a second pod of the one left out starts":       {desired: 2, updated: 0, generations: []string{"1", "1", "2"}},
		"as before, but the other runs the newest spec": {desired: 2, updated: 1, generations: []string{"2", "1", "2"}, runs: true},
	} {
		seen := aRelease(func(w *kube.Workload, _ []kube.Pod) {
			w.Kind, w.Desired, w.Updated, w.Generation = "DaemonSet", one.desired, one.updated, "2"
		})
		seen.Sets[deployment], seen.Sets[daemonSet] = health.Seen[kube.Workload]{Synced: true}, seen.Sets[deployment]
		var pods []kube.Pod
		for i, generation := range one.generations {
			pod := kube.Pod{Namespace: "kube-system", Labels: of(generation), Node: "cp-2", Phase: "Running", Ready: true}
			if i == 0 {
				pod.Node = "cp-1"
			}
			pods = append(pods, pod)
		}
		seen.Pods["kube-system"] = health.Seen[kube.Pod]{Synced: true, Items: pods}
		assert.Equal(t, one.runs, Run(spec, seen), name)
	}
}

func TestWorkloads_RunOnlyWhenTheNewestSpecIsRolledOutAndReady(t *testing.T) {
	assert.True(t, Run(theReleases(), aRelease(func(*kube.Workload, []kube.Pod) {})))
	for want, change := range map[string]func(*kube.Workload, []kube.Pod){
		"its controller has not seen the newest spec yet": func(w *kube.Workload, _ []kube.Pod) { w.Observed = false },
		"1 of 2 pods are of the newest spec":              func(w *kube.Workload, _ []kube.Pod) { w.Updated = 1 },
		"1 pods of an older spec are still there":         func(w *kube.Workload, _ []kube.Pod) { w.Old = 1 },
		"1 of 2 pods are Ready; pod kube-system/coredns-b is not scheduled: 0/1 nodes are available": func(_ *kube.Workload, pods []kube.Pod) {
			pods[1].Node, pods[1].Ready, pods[1].Unscheduled = "", false, "0/1 nodes are available"
		},
		"1 of 2 pods are Ready": func(_ *kube.Workload, pods []kube.Pod) { pods[1].Deleting = true },
	} {
		results := Evaluate(theReleases(), aRelease(change))
		require.Equal(t, health.Failed, results[0].Verdict, want)
		assert.Equal(t, want, results[0].Reason)
		assert.NotEmpty(t, results[0].Command)
		assert.NotEmpty(t, results[0].Ask, "the events about the workload are looked up")
	}
}

func TestWorkloads_SayWhyNoPodsCanBeMade(t *testing.T) {
	results := Evaluate(theReleases(), aRelease(func(w *kube.Workload, _ []kube.Pod) {
		w.Updated, w.Failure = 0, `pods "x" is forbidden: violates PodSecurity "baseline:latest"`
	}))
	assert.Contains(t, strings.Join(results[0].Evidence, "\n"), "violates PodSecurity")
}

func TestWorkloads_SamplesAreBlockedUntilEveryWorkloadRuns(t *testing.T) {
	spec := theReleases()
	spec.Accepts = []Sample{{Resource: "certificates",
		Object: json.RawMessage(`{"kind":"Certificate","metadata":{"namespace":"cert-manager","name":"x"}}`)}}
	sample := func(seen *Cluster) health.Result { return Evaluate(spec, seen)[1] }

	broken := aRelease(func(w *kube.Workload, _ []kube.Pod) { w.Updated = 0 })
	assert.True(t, sample(broken).Blocked)
	well := aRelease(func(*kube.Workload, []kube.Pod) {})
	assert.True(t, sample(well).Unseen)
	well.Samples["Certificate cert-manager/x"] = Answer{Asked: true, Err: &health.Broken{Reason: "no endpoints available"}}
	assert.Equal(t, "is refused: no endpoints available", sample(well).Reason)
	well.Samples["Certificate cert-manager/x"] = Answer{Asked: true}
	assert.Equal(t, health.Passed, sample(well).Verdict)
}

func TestSpec_NamesEveryProblemAtOnce(t *testing.T) {
	spec := &Spec{
		Target:   health.Target{Timeout: probe.Duration(-time.Second)},
		Releases: []Release{{"kube-system", "coredns"}, {"kube-system", "coredns"}, {"", "x"}},
		Accepts: []Sample{
			{Object: json.RawMessage(`{"kind":"Certificate"}`)},
			{Object: json.RawMessage(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}`)},
		},
	}
	for _, problem := range []string{
		"cluster: is empty", "kubeconfig: is empty", "releases[1]: kube-system/coredns is there twice", `releases[2]: "/x" lacks a part`,
		"accepts[0].object: lacks apiVersion, kind or metadata.name", "accepts[1].resource: is empty; give the plural of Pod", "timeout: -1s",
	} {
		assert.ErrorContains(t, spec.Validate(), problem)
	}
}

func TestSpec_ComesBackAsItWasEncodedWithDefaultsSet(t *testing.T) {
	spec := theReleases()
	spec.Accepts = []Sample{{Resource: "certificates",
		Object: json.RawMessage(`{"apiVersion":"a/v1","kind":"Certificate","metadata":{"name":"x"}}`)}}
	text, err := probe.Encode(spec)
	require.NoError(t, err)
	read := new(Spec)
	require.NoError(t, probe.Read(strings.NewReader(text), read))
	spec.SetDefaults()
	assert.Equal(t, spec, read)
}

func TestWorkloads_AwaitWhatTheControllersHaveActedOn(t *testing.T) {
	spec := theReleases()
	spec.Awaits = []Awaited{{
		Group: "bitnami.com", Version: "v1alpha1", Resource: "sealedsecrets", Kind: "SealedSecret", Namespace: "kube-system",
		Name: "sample", Condition: "Synced",
	}}
	require.NoError(t, spec.Validate())
	judge := func(seen *Cluster, objects health.Seen[Acted]) health.Result {
		seen.Acted = map[string]health.Seen[Acted]{"SealedSecret kube-system/sample": objects}
		results := Evaluate(spec, seen)
		return results[len(results)-1]
	}
	healthy := func() *Cluster { return aRelease(func(*kube.Workload, []kube.Pod) {}) }
	object := func(one ...Acted) health.Seen[Acted] { return health.Seen[Acted]{Synced: true, Items: one} }

	assert.Equal(t, health.Passed, judge(healthy(), object(Acted{Status: "True", Current: true})).Verdict)
	for want, objects := range map[string]health.Seen[Acted]{
		"does not exist":                  object(),
		"has no condition Synced yet":     object(Acted{Current: true}),
		"Synced is False: no key fits":    object(Acted{Status: "False", Message: "no key fits", Current: true}),
		"Synced is False":                 object(Acted{Status: "False", Current: true}),
		"its controller has not seen the": object(Acted{Status: "True"}),
	} {
		result := judge(healthy(), objects)
		assert.Equal(t, health.Failed, result.Verdict, want)
		assert.Contains(t, result.Reason, want)
		assert.Equal(t, "kubectl -n kube-system describe sealedsecret sample", result.Command)
	}
	assert.NotEqual(t, health.Passed, judge(healthy(), health.Seen[Acted]{}).Verdict, "not seen yet")
	running := aRelease(func(w *kube.Workload, _ []kube.Pod) { w.Observed = false })
	assert.Equal(t, health.Skipped, judge(running, object(Acted{Status: "True", Current: true})).Verdict)

	spec.Awaits[0].Condition = ""
	assert.ErrorContains(t, spec.Validate(), "awaits[0]: lacks a part")
}
