package gate

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

// rolledOut is a workload of Cilium's release that is rolled out.
func rolledOut(kind, name string, pods int) kube.Workload {
	return kube.Workload{Kind: kind, Namespace: "kube-system", Name: name, Release: "cilium", Observed: true, Desired: pods, Updated: pods}
}

var _ = healthyPart(func(spec *Spec, seen *Cluster) {
	seen.AgentSets = health.Seen[kube.Workload]{Synced: true, Items: []kube.Workload{rolledOut("DaemonSet", "cilium", len(spec.Nodes))}}
	seen.Operator = health.Seen[kube.Workload]{Synced: true, Items: []kube.Workload{rolledOut("Deployment", "cilium-operator", 2)}}
})

var _ = fault("agents-not-rolled-out", func(c *Cluster) { c.AgentSets.Items[0].Updated = 3 })

var _ = fault("agents-replaced-by-hand-only", func(c *Cluster) {
	set := &c.AgentSets.Items[0]
	set.Updated, set.OnDelete, set.Generation, set.Selector = 3, true, "2", map[string]string{"k8s-app": "cilium"}
	for i := range c.Agents.Items {
		generation := map[bool]string{true: "2", false: "1"}[i < 3]
		c.Agents.Items[i].Labels = map[string]string{"k8s-app": "cilium", "pod-template-generation": generation}
	}
})

var _ = fault("agents-spec-not-observed", func(c *Cluster) { c.AgentSets.Items[0].Observed = false })

var _ = fault("cilium-by-hand", func(c *Cluster) { c.AgentSets.Items[0].Release = "" })

var _ = fault("cilium-not-installed", func(c *Cluster) {
	c.AgentSets.Items, c.Operator.Items, c.Agents.Items, c.Operators.Items, c.Config.Items = nil, nil, nil, nil, nil
	c.Envoys.Items, c.EnvoySets.Items = nil, nil
	c.Ranges = health.Seen[Ranges]{Err: &health.Broken{Reason: "the API server does not know ciliumnodes", Unknown: true}}
	for i := range c.Nodes.Items {
		c.Nodes.Items[i].Ready = "False"
	}
})

func TestGate_InModeHelmCiliumMustBelongToARelease(t *testing.T) {
	for mode, owners := range map[cluster.CiliumMode]map[string]bool{
		cluster.CiliumHelm: {"cilium": true, "": false}, cluster.CiliumInline: {"cilium": true, "": true}, "": {"cilium": true, "": true},
	} {
		for release, holds := range owners {
			spec := declared()
			spec.Cilium.Mode = mode
			seen := healthy(spec)
			seen.AgentSets.Items[0].Release, seen.Operator.Items[0].Release = release, release
			seen.EnvoySets.Items[0].Release = release
			results := Evaluate(spec, seen)
			assert.Equal(t, holds, health.Hold(results), "mode %q, release %q", mode, release)
			if !holds {
				assert.True(t, hopeless(results), "the owner does not change by itself")
			}
		}
	}
}
