package gate

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
)

var _ = healthyPart(func(spec *Spec, seen *Cluster) {
	onTalos(seen, func(n *TalosNode) { n.Version = &Version{Runs: "v1.12.7"} }, names(spec.Nodes)...)
	seen.APIServers = map[string]Version{}
	for _, node := range spec.Nodes {
		if node.Role == cluster.ControlPlane {
			seen.APIServers[node.Name] = Version{Runs: "v1.35.8"}
		}
	}
})

// versioned declares versions and changes what is seen.
func versioned(change func(*Cluster)) func() (*Spec, *Cluster) {
	return func() (*Spec, *Cluster) {
		spec := declared()
		spec.Versions = &Versions{Talos: "v1.12.7", Kubernetes: "v1.35.8", Installer: "factory.talos.dev/nocloud-installer/abc:v1.12.7"}
		seen := healthy(spec)
		for i := range seen.Nodes.Items {
			seen.Nodes.Items[i].Kubelet = "v1.35.8"
		}
		change(seen)
		return spec, seen
	}
}

var _ = scenario("talos-not-upgraded", false, versioned(func(c *Cluster) {
	onTalos(c, func(n *TalosNode) { n.Version = &Version{Runs: "v1.12.6"} }, "infra-cp-1", "infra-worker-2")
}))

var _ = scenario("machine-of-unknown-versions", false, versioned(func(c *Cluster) {
	onTalos(c, func(n *TalosNode) {
		*n = TalosNode{Asked: true, Err: &health.Broken{Reason: "Unavailable: no route to host"}}
	}, "infra-worker-2")
	c.Nodes.Items = c.Nodes.Items[:4]
}))

var _ = scenario("talos-being-installed", false, versioned(func(c *Cluster) {
	onTalos(c, func(n *TalosNode) {
		n.Version = &Version{Runs: "v1.12.6"}
		delete(n.Services, "kubelet")
	}, "infra-worker-2")
}))

var _ = scenario("talos-version-unreadable", false, versioned(func(c *Cluster) {
	onTalos(c, func(n *TalosNode) { n.Version = &Version{Err: &health.Broken{Reason: "Unavailable: no route to host"}} }, "infra-worker-2")
}))

var _ = scenario("kubelet-of-another-version", false, versioned(func(c *Cluster) { c.Nodes.Items[3].Kubelet = "v1.35.4" }))

var _ = scenario("api-server-of-another-version", false, versioned(func(c *Cluster) {
	c.APIServers["infra-cp-2"] = Version{Runs: "v1.35.4"}
	c.APIServers["infra-cp-3"] = Version{Err: &health.Broken{Reason: "dial tcp 10.25.11.13:6443: connect: connection refused"}}
}))

func TestGate_DeclaredVersionsRun(t *testing.T) {
	assert.True(t, health.Hold(Evaluate(versioned(func(*Cluster) {})())))
	assert.True(t, hopeless(Evaluate(scenarios["talos-not-upgraded"].make())), "nothing upgrades Talos by itself")
	assert.False(t, hopeless(Evaluate(scenarios["talos-being-installed"].make())), "a worker that joins installs for a minute")
	assert.False(t, hopeless(Evaluate(scenarios["kubelet-of-another-version"].make())), "Talos starts the new kubelet")
	spec, seen := versioned(func(c *Cluster) { c.Nodes.Items[3].Kubelet = "v1.30.0" })()
	spec.Versions = nil
	assert.True(t, health.Hold(Evaluate(spec, seen)), "without declared versions nothing is compared")
}
