package health

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/probe"
)

func TestGate_HoldsForAHealthyCluster(t *testing.T) {
	for _, nodes := range []int{1, 2, 3, 5} {
		spec := only(nodes)
		results := Evaluate(GateChecks(spec), healthy(spec))
		assert.True(t, Hold(results), "%d nodes: %v", nodes, results)
	}
}

func TestGate_OfNothingSeenDoesNotHold(t *testing.T) {
	for _, result := range Evaluate(GateChecks(declared()), &Cluster{}) {
		assert.Equal(t, Failed, result.Verdict, result.Check)
		assert.True(t, result.Unseen, "%s: there is nothing to say before the first look", result.Check)
	}
}

// Each case breaks one thing in a healthy cluster, with what follows from it; the golden file is what a person reads.
func TestGate_AFailureNamesTheCulpritAndTheReason(t *testing.T) {
	for name, breakIt := range gateFaults {
		t.Run(name, func(t *testing.T) {
			spec := declared()
			seen := healthy(spec)
			breakIt(seen)
			results := Evaluate(GateChecks(spec), seen)
			assert.False(t, Hold(results))
			golden(t, "gate/"+name, report(t, results))
		})
	}
}

// Every check must be able to fail, to pass, and to be skipped.
func TestGate_EveryCheckHasEachVerdict(t *testing.T) {
	verdicts := map[string]map[Verdict]bool{}
	note := func(results []Result) {
		for _, result := range results {
			if verdicts[result.Check] == nil {
				verdicts[result.Check] = map[Verdict]bool{}
			}
			if !result.Unseen {
				verdicts[result.Check][result.Verdict] = true
			}
		}
	}
	for _, breakIt := range gateFaults {
		seen := healthy(declared())
		breakIt(seen)
		note(Evaluate(GateChecks(declared()), seen))
	}
	assert.Len(t, verdicts, len(GateChecks(declared())))
	never := map[string]bool{ // nothing comes before these
		"the Talos API answers on every node": true, "the API server is ready": true,
	}
	for check, has := range verdicts {
		assert.True(t, has[Failed], "%s never fails", check)
		assert.True(t, has[Passed], "%s never passes", check)
		assert.Equal(t, !never[check], has[Skipped], "%s: skipped", check)
	}
}

func TestGate_OfBothFamiliesWantsBothInTheirOrder(t *testing.T) {
	spec := dualStack(declared())
	require.NoError(t, spec.Validate())
	assert.True(t, Hold(Evaluate(GateChecks(spec), healthy(spec))))
	for name, breakIt := range map[string]func(*Cluster){
		"dual-stack-order":      func(c *Cluster) { slices.Reverse(c.Nodes.Items[3].Addresses) },
		"dual-stack-one-family": func(c *Cluster) { c.Nodes.Items[3].PodCIDRs = c.Nodes.Items[3].PodCIDRs[:1] },
		"dual-stack-cilium-off": func(c *Cluster) { c.Config.Items[0].Values["enable-ipv6"] = "false" },
	} {
		seen := healthy(spec)
		breakIt(seen)
		results := Evaluate(GateChecks(spec), seen)
		assert.False(t, Hold(results), name)
		golden(t, "gate/"+name, report(t, results))
	}
}

func TestGate_OverControlPlanesDoesNotMindTheWorkers(t *testing.T) {
	full := declared()
	spec := declared()
	spec.Nodes, spec.Others = full.Nodes[:3], full.Nodes[3:]
	require.NoError(t, spec.Validate())
	there := healthy(full)
	there.Nodes.Items[4].Ready = "False"
	delete(there.CiliumHealth, "infra-worker-1")
	for name, seen := range map[string]*Cluster{"not there yet": healthy(spec), "there and not well": there} {
		results := Evaluate(GateChecks(spec), seen)
		assert.True(t, Hold(results), name)
		for _, result := range results {
			assert.NotContains(t, result.Subject, "worker", name)
		}
	}
}

func TestGate_AStrangerIsReportedAndHoldsNothingUp(t *testing.T) {
	spec := declared()
	seen := healthy(spec)
	seen.Nodes.Items = append(seen.Nodes.Items, KubeNode{Name: "laptop", Ready: "True", Addresses: []string{"10.25.11.99"}})
	results := Evaluate(GateChecks(spec), seen)
	assert.True(t, Hold(results))
	golden(t, "gate/stranger", report(t, results))
}

func TestGate_ANodeObjectThatWasLeftBehindIsAStrangerOnly(t *testing.T) {
	spec := declared()
	seen := healthy(spec)
	seen.Nodes.Items[4].Heard = time.Unix(1001, 0)
	seen.Nodes.Items = append(seen.Nodes.Items, KubeNode{Name: "talos-xyz", Ready: "Unknown", Addresses: seen.Nodes.Items[4].Addresses, Heard: time.Unix(1000, 0)})
	assert.True(t, Hold(Evaluate(GateChecks(spec), seen)))
}

func TestGate_OneOperatorPendingIsNormalOnOneUsableNodeOnly(t *testing.T) {
	pending := Pod{Namespace: "kube-system", Name: "cilium-operator-b", Phase: "Pending", Unscheduled: "didn't match pod anti-affinity rules"}
	for nodes, holds := range map[int]bool{1: true, 2: false, 5: false} {
		spec := only(nodes)
		seen := healthy(spec)
		seen.Operators.Items[1] = pending
		assert.Equal(t, holds, Hold(Evaluate(GateChecks(spec), seen)), "%d nodes", nodes)
		for i := range seen.Nodes.Items[1:] {
			seen.Nodes.Items[1+i].Cordoned = true
		}
		assert.True(t, Hold(Evaluate(GateChecks(spec), seen)), "%d nodes, one usable", nodes)
	}
	spec := only(1)
	seen := healthy(spec)
	seen.Operators.Items[1] = pending
	golden(t, "gate/one-node", report(t, Evaluate(GateChecks(spec), seen)))
}

func TestGate_WithoutCNIARegisteredNodeIsEnough(t *testing.T) {
	spec := declared()
	spec.Cilium = nil
	seen := healthy(spec)
	seen.Agents, seen.Operators, seen.AgentSets, seen.Operator = Seen[Pod]{}, Seen[Pod]{}, Seen[Workload]{}, Seen[Workload]{}
	seen.CiliumHealth, seen.CiliumStatus, seen.Config, seen.Ranges = nil, nil, Seen[Settings]{}, Seen[Ranges]{}
	for i := range seen.Nodes.Items {
		seen.Nodes.Items[i].Ready = "False"
	}
	results := Evaluate(GateChecks(spec), seen)
	assert.True(t, Hold(results))
	golden(t, "gate/without-cni", report(t, results))
}

func TestGate_WithoutDeclaredRangesComparesNone(t *testing.T) {
	spec := declared()
	seen := healthy(spec)
	spec.Network = nil
	seen.Nodes.Items[0].PodCIDRs = []string{"10.99.0.0/24"}
	assert.True(t, Hold(Evaluate(GateChecks(spec), seen)))
}

func TestGate_WhatATalosOrKubernetesCannotSayIsSkipped(t *testing.T) {
	spec := declared()
	seen := healthy(spec)
	for name, node := range seen.Talos {
		node.Given = &TalosGiven{Err: &Broken{Reason: "resource type is not supported", Unknown: true}}
		seen.Talos[name] = node
	}
	seen.Services = Seen[Ranges]{Err: &Broken{Reason: "no such kind", Unknown: true}}
	assert.True(t, Hold(Evaluate(GateChecks(spec), seen)))
}

func TestGate_AnExtensionMayHaveFinishedAndNeedsNoHealthCheck(t *testing.T) {
	for state, holds := range map[string]bool{"Running": true, "Finished": true, "Failed": false, "Waiting": false} {
		seen := healthy(declared())
		seen.Talos["infra-worker-1"].Services["ext-zpool-importer"] = Service{State: state}
		assert.Equal(t, holds, Hold(Evaluate(GateChecks(declared()), seen)), state)
		seen = healthy(declared())
		seen.Talos["infra-worker-1"].Services["kubelet"] = Service{State: state}
		assert.False(t, Hold(Evaluate(GateChecks(declared()), seen)), "a kubelet of unknown health is %s", state)
	}
}

func TestGate_CiliumBelongsToWhomItsModeSays(t *testing.T) {
	for mode, owners := range map[string]map[string]bool{
		CiliumHelm: {"cilium": true, "": false}, CiliumInline: {"cilium": true, "": true}, "": {"cilium": true, "": true},
	} {
		for release, holds := range owners {
			spec := declared()
			spec.Cilium.Mode = mode
			seen := healthy(spec)
			seen.AgentSets.Items[0].Release, seen.Operator.Items[0].Release = release, release
			results := Evaluate(GateChecks(spec), seen)
			assert.Equal(t, holds, Hold(results), "mode %q, release %q", mode, release)
			if !holds {
				assert.True(t, hopeless(results), "nothing changes the owner by itself")
			}
		}
	}
}

func TestGate_WhatDoesNotHealByItselfEndsTheWaitEarly(t *testing.T) {
	for name, early := range map[string]bool{
		"talos-credentials-refused": true, "nodes-cannot-be-listed": true, "node-under-another-name": true, "talos-of-other-ranges": true,
		"services-of-another-range": true, "node-of-another-pod-range": true, "cilium-node-of-another-range": true, "cilium-of-other-settings": true, "cilium-by-hand": true,
		"node-without-pod-range": false, "kubelet-down-on-a-worker": false, "agent-crashing": false, "agent-image-cannot-be-pulled": false,
		"api-server-refuses-connections": false, "etcd-learner": false, "cilium-not-installed": false, "talos-api-unreachable": false,
	} {
		seen := healthy(declared())
		gateFaults[name](seen)
		assert.Equal(t, early, hopeless(Evaluate(GateChecks(declared()), seen)), name)
	}
}

func TestGate_ADemandedServiceMustBeThere(t *testing.T) {
	spec := declared()
	spec.Services = []string{"ext-qemu-guest-agent"}
	seen := healthy(spec)
	assert.True(t, Hold(Evaluate(GateChecks(spec), seen)))
	delete(seen.Talos["infra-worker-2"].Services, "ext-qemu-guest-agent")
	assert.False(t, Hold(Evaluate(GateChecks(spec), seen)))
	spec.Services = nil
	assert.True(t, Hold(Evaluate(GateChecks(spec), seen)))
}

func TestReport_EndsInOneLineThatReadsBack(t *testing.T) {
	spec := declared()
	seen := healthy(spec)
	seen.Nodes.Items = seen.Nodes.Items[:4]
	var out strings.Builder
	written := NewReport("gate", "infra", spec.StableFor, End{Outcome: Closed, Results: Evaluate(GateChecks(spec), seen), Waited: time.Second}, 7)
	require.NoError(t, written.Write(&out))
	read, err := ReportFrom(out.String())
	require.NoError(t, err)
	for i := range written.Problems {
		written.Problems[i].Ask = nil // it is for the probe itself
	}
	assert.Equal(t, written, read)
	assert.Equal(t, "infra-worker-2", read.Problems[0].Subject)
	assert.NotContains(t, probe.ReportLine(out.String()), "\n")
}

func report(t *testing.T, results []Result) string {
	t.Helper()
	outcome := Open
	if !Hold(results) {
		outcome = Closed
	}
	full := NewReport("gate", "infra", probe.Duration(DefaultStableFor), End{Outcome: outcome, Results: results, Waited: time.Minute}, 42)
	var text strings.Builder
	require.NoError(t, full.Write(&text))
	return text.String()
}

// A hundred nodes are evaluated again with each change that is seen.
func BenchmarkGate_EvaluatesAHundredNodes(b *testing.B) {
	spec := declared()
	spec.Nodes = nil
	for i := range 100 {
		role := Worker
		if i < 3 {
			role = ControlPlane
		}
		spec.Nodes = append(spec.Nodes, Node{Name: fmt.Sprintf("node-%d", i), Role: role, Address: fmt.Sprintf("10.25.11.%d", i)})
	}
	seen, checks := healthy(spec), GateChecks(spec)
	for b.Loop() {
		if !Hold(Evaluate(checks, seen)) {
			b.Fatal("not healthy")
		}
	}
}
