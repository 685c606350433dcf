package gate

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
)

// withoutThem makes a gate of a cluster in which a control plane and a worker are dead.
func withoutThem(skip ...cluster.SkippedNode) (*Spec, *Cluster) {
	spec := declared()
	seen := healthy(spec)
	for _, i := range []int{2, 4} {
		name := spec.Nodes[i].Name
		onTalos(seen, func(n *TalosNode) { *n = TalosNode{Asked: true, Err: &health.Broken{Reason: "no route to host"}} }, name)
		seen.Nodes.Items[i].Ready = "Unknown"
		agentOf(seen, name).Ready, seen.Envoys.Items[i].Ready = false, false
		delete(seen.CiliumHealth, name)
		delete(seen.CiliumStatus, name)
	}
	for i := range seen.Agents.Items {
		seen.Agents.Items[i].Labels = map[string]string{"k8s-app": "cilium"}
	}
	seen.AgentSets.Items[0].Selector = map[string]string{"k8s-app": "cilium"}
	seen.AgentSets.Items[0].Updated -= 2
	spec.Skip = skip
	spec.Nodes = slices.DeleteFunc(spec.Nodes, func(node Machine) bool { return spec.Skip.Has(node.Name) })
	return spec, seen
}

var skipped = []cluster.SkippedNode{{Name: "infra-cp-3", Reason: "waits for a disk"}, {Name: "infra-worker-2", Reason: "waits for memory"}}

var _ = scenario("nodes-left-out", true, func() (*Spec, *Cluster) { return withoutThem(skipped...) })

func TestGate_WaitsForADeadNodeUnlessItIsLeftOut(t *testing.T) {
	for _, some := range [][]cluster.SkippedNode{nil, skipped[:1], skipped[1:]} {
		assert.False(t, health.Hold(Evaluate(withoutThem(some...))), "%v", some)
	}
	spec, seen := withoutThem(skipped...)
	report := health.NewReport("gate", spec.Target, health.End{Results: Evaluate(spec, seen)}, 0)
	for _, node := range skipped {
		assert.Contains(t, report.Problems, health.Result{
			Check: "every declared node takes part", Subject: node.Name, Verdict: health.Skipped,
			Reason: "lifecycle.skip leaves it out: " + node.Reason,
		})
	}
	for _, result := range report.Problems {
		assert.Equal(t, health.Skipped, result.Verdict, result.Check)
	}
}
