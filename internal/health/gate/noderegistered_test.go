package gate

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

var _ = healthyPart(func(spec *Spec, seen *Cluster) {
	seen.Nodes.Synced = true
	for i, node := range spec.Nodes {
		seen.Nodes.Items = append(seen.Nodes.Items,
			Node{Name: node.Name, Ready: "True", Addresses: node.addresses(), PodCIDRs: podCIDRs(spec, i)})
	}
})

var _ = fault("nodes-cannot-be-listed", func(c *Cluster) { c.Nodes.Err = &health.Broken{Reason: "Unauthorized", Hopeless: true} })

var _ = fault("node-not-registered", func(c *Cluster) {
	c.Nodes.Items, c.Agents.Items = c.Nodes.Items[:4], c.Agents.Items[:4]
	delete(c.CiliumHealth, "infra-worker-2")
})

var _ = fault("node-under-another-name", func(c *Cluster) {
	c.Nodes.Items[4].Name = "talos-xyz"
	agentOf(c, "infra-worker-2").Node = "talos-xyz"
	delete(c.CiliumHealth, "infra-worker-2")
})

var _ = fault("node-under-another-name-later", func(c *Cluster) {
	c.Nodes.Items[4].Reported = time.Unix(1000, 0)
	c.Nodes.Items = append(c.Nodes.Items,
		Node{Name: "talos-xyz", Ready: "True", Addresses: c.Nodes.Items[4].Addresses, Reported: time.Unix(1001, 0)})
	c.CiliumHealth["infra-worker-2"] = CiliumHealth{Asked: true, Err: "pod not found on node"}
})

var _ = scenario("undeclared-node", true, func() (*Spec, *Cluster) {
	spec := declared()
	seen := healthy(spec)
	seen.Nodes.Items = append(seen.Nodes.Items, Node{Name: "laptop", Ready: "True", Addresses: []netip.Addr{ip("10.25.11.99")}})
	return spec, seen
})

var _ = scenario("cordoned-node", true, func() (*Spec, *Cluster) {
	spec := declared()
	seen := healthy(spec)
	seen.Nodes.Items[4].Cordoned = true
	return spec, seen
})

// The address of a dead machine whose Node object was left behind is another's now, which still boots.
func TestGate_ASilentNodeObjectWithTheAddressIsNotTheMachineUnderAnotherName(t *testing.T) {
	for ready, want := range map[string]string{"Unknown": "", "True": "laptop", "False": "laptop"} {
		spec := declared()
		seen := healthy(spec)
		former := seen.Nodes.Items[4]
		seen.Nodes.Items[4] = Node{Name: "laptop", Ready: ready, Addresses: former.Addresses}
		machine := spec.Nodes[slices.IndexFunc(spec.Nodes, func(m Machine) bool { return m.Name == former.Name })]
		assert.Equal(t, want, seen.misnamed(machine), ready)
	}
}

// leftBehind returns a cluster with the Node object of a machine that is gone, and with its agent's pod, which nothing replaces any more.
func leftBehind(ready string) (*Spec, *Cluster) {
	spec := declared()
	seen := healthy(spec)
	seen.Nodes.Items[4].Reported = time.Unix(1001, 0)
	seen.Nodes.Items = append(seen.Nodes.Items,
		Node{Name: "talos-xyz", Ready: ready, Addresses: []netip.Addr{ip("10.25.11.98")}, Reported: time.Unix(1000, 0)})
	labels := map[string]string{"k8s-app": "cilium"}
	seen.Agents.Items = append(seen.Agents.Items,
		kube.Pod{Namespace: "kube-system", Name: "cilium-old", Node: "talos-xyz", Phase: "Running", Labels: labels})
	seen.AgentSets.Items[0].Selector = labels
	seen.AgentSets.Items[0].Desired++
	return spec, seen
}

var _ = scenario("node-left-behind", true, func() (*Spec, *Cluster) { return leftBehind("Unknown") })

var _ = scenario("node-left-behind-blocks-a-rollout", false, func() (*Spec, *Cluster) {
	spec, seen := leftBehind("Unknown")
	seen.AgentSets.Items[0].Updated -= 2
	return spec, seen
})

func TestGate_ANodeThatIsNotDeclaredCountsOnlyWhileItsKubeletReports(t *testing.T) {
	for ready, holds := range map[string]bool{"Unknown": true, "True": false, "False": false} {
		assert.Equal(t, holds, health.Hold(Evaluate(leftBehind(ready))), ready)
	}
	spec, seen := leftBehind("Unknown")
	spec.Others = []Machine{{Name: "talos-xyz"}}
	assert.False(t, health.Hold(Evaluate(spec, seen)), "a declared node that the gate does not wait for")
}

func TestGate_ANodeObjectThatWasLeftBehindIsARemarkOnly(t *testing.T) {
	spec, seen := leftBehind("Unknown")
	seen.Nodes.Items[5].Addresses = seen.Nodes.Items[4].Addresses
	assert.True(t, health.Hold(Evaluate(spec, seen)))
}
