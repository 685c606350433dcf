package gate

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/tests/golden"
	"github.com/slipway-platform/slipway/tests/healthtest"
)

func TestGate_HoldsForAHealthyCluster(t *testing.T) {
	for _, nodes := range []int{1, 2, 3, 5} {
		spec := only(nodes)
		results := Evaluate(spec, healthy(spec))
		assert.True(t, health.Hold(results), "%d nodes: %v", nodes, results)
	}
}

func TestGate_DoesNotHoldBeforeAnythingWasRead(t *testing.T) {
	for _, result := range Evaluate(declared(), &Cluster{}) {
		assert.Equal(t, health.Failed, result.Verdict, result.Check)
		assert.True(t, result.Unseen, "%s: nothing is printed before the first look", result.Check)
	}
}

// The golden file has the report of a healthy cluster, and for each scenario the lines that differ from it.
func TestGate_AFailureNamesTheCauseAndTheReason(t *testing.T) {
	spec := declared()
	base := healthtest.Report(t, "gate", Evaluate(spec, healthy(spec)))
	reports := map[string]string{"(healthy)": base}
	for name, scenario := range scenarios {
		spec, seen := scenario.make()
		results := Evaluate(spec, seen)
		assert.Equal(t, scenario.holds, health.Hold(results), name)
		reports[name] = healthtest.Differing(base, healthtest.Report(t, "gate", results))
		assert.NotEmpty(t, reports[name], name)
		for _, result := range results {
			assert.NotRegexp(t, `\b(ADDRESS|NODE|NAMESPACE|POD|ID)\b`, result.Command, name)
		}
	}
	assert.Greater(t, len(reports), 3*len(Checks))
	golden.Cases(t, "testdata/reports.txt", reports)
}

func TestGate_EveryCheckPassesFailsAndIsSkippedInSomeScenario(t *testing.T) {
	verdicts := map[string]map[health.Verdict]bool{}
	for _, scenario := range scenarios {
		for _, result := range Evaluate(scenario.make()) {
			if verdicts[result.Check] == nil {
				verdicts[result.Check] = map[health.Verdict]bool{}
			}
			if !result.Unseen {
				verdicts[result.Check][result.Verdict] = true
			}
		}
	}
	assert.Len(t, verdicts, len(Checks))
	dependOnNothing := map[string]bool{talosAnswers.Name: true, apiServerReady.Name: true}
	onlyWarn := map[string]bool{kernelParameters.Name: true, etcdBackup.Name: true}
	for check, has := range verdicts {
		assert.Equal(t, !onlyWarn[check], has[health.Failed], "%s: fails", check)
		assert.True(t, has[health.Passed], "%s never passes", check)
		assert.Equal(t, !dependOnNothing[check], has[health.Skipped], "%s: skipped", check)
	}
}

func TestGate_OfBothFamiliesHolds(t *testing.T) {
	spec := dualStack(declared())
	require.NoError(t, spec.Validate())
	assert.True(t, health.Hold(Evaluate(spec, healthy(spec))))
}

func TestGate_OverControlPlanesDoesNotJudgeTheWorkers(t *testing.T) {
	full := declared()
	spec := declared()
	spec.Nodes, spec.Others = full.Nodes[:3], full.Nodes[3:]
	require.NoError(t, spec.Validate())
	joined := healthy(full)
	joined.Nodes.Items[4].Ready = "False"
	delete(joined.CiliumHealth, "infra-worker-1")
	for name, seen := range map[string]*Cluster{"not joined yet": healthy(spec), "joined and not healthy": joined} {
		results := Evaluate(spec, seen)
		assert.True(t, health.Hold(results), name)
		for _, result := range results {
			assert.NotContains(t, result.Subject, "worker", name)
		}
	}
}

var _ = scenario("without-cni", true, func() (*Spec, *Cluster) {
	spec := declared()
	spec.Cilium = nil
	seen := healthy(spec)
	empty := &Cluster{}
	seen.Agents, seen.Operators, seen.AgentSets, seen.Operator = empty.Agents, empty.Operators, empty.AgentSets, empty.Operator
	seen.Envoys, seen.EnvoySets = empty.Envoys, empty.EnvoySets
	seen.CiliumHealth, seen.CiliumStatus, seen.Config, seen.Ranges = nil, nil, empty.Config, empty.Ranges
	for i := range seen.Nodes.Items {
		seen.Nodes.Items[i].Ready = "False"
	}
	return spec, seen
})

func TestGate_WithoutDeclaredRangesComparesNone(t *testing.T) {
	spec := declared()
	seen := healthy(spec)
	spec.Network = nil
	seen.Nodes.Items[0].PodCIDRs = cidrs("10.99.0.0/24")
	assert.True(t, health.Hold(Evaluate(spec, seen)))
}

func TestGate_WhatAnOlderTalosOrKubernetesDoesNotShowIsSkipped(t *testing.T) {
	spec := declared()
	seen := healthy(spec)
	for name, node := range seen.Talos {
		node.Ranges = &ControllerRanges{Err: &health.Broken{Reason: "resource type is not supported", Unknown: true}}
		seen.Talos[name] = node
	}
	seen.Services = health.Seen[Ranges]{Err: &health.Broken{Reason: "no such kind", Unknown: true}}
	assert.True(t, health.Hold(Evaluate(spec, seen)))
}

func TestGate_WhatDoesNotHealByItselfEndsTheWaitEarly(t *testing.T) {
	for name, early := range map[string]bool{
		"talos-credentials-refused": true, "nodes-cannot-be-listed": true, "node-under-another-name": true, "talos-of-other-ranges": true,
		"services-of-another-range": true, "node-of-another-pod-range": true, "cilium-node-of-another-range": true,
		"cilium-of-other-settings": true, "cilium-by-hand": true,
		"node-without-pod-range": false, "kubelet-down-on-a-worker": false, "agent-crashing": false, "agent-image-cannot-be-pulled": false,
		"api-server-refuses-connections": false, "etcd-learner": false, "cilium-not-installed": false, "talos-api-unreachable": false,
	} {
		assert.Equal(t, early, hopeless(Evaluate(scenarios[name].make())), name)
	}
}

// A hundred nodes are evaluated again with each change that is seen.
func BenchmarkGate_EvaluatesAHundredNodes(b *testing.B) {
	spec := declared()
	spec.Nodes = nil
	for i := range 100 {
		role := cluster.Worker
		if i < 3 {
			role = cluster.ControlPlane
		}
		spec.Nodes = append(spec.Nodes, Machine{Name: fmt.Sprintf("node-%d", i), Role: role, Address: ip(fmt.Sprintf("10.25.11.%d", i))})
	}
	seen := healthy(spec)
	for b.Loop() {
		if !health.Hold(Evaluate(spec, seen)) {
			b.Fatal("not healthy")
		}
	}
}
