package cilium

import (
	"encoding/json"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/cilium/chart"
	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/health/mesh"
)

// Expected returns what a gate expects of this Cilium.
func (c *CiliumCore) Expected() *gate.Cilium {
	return &gate.Cilium{
		Namespace:   chart.ReleaseNamespace,
		Version:     c.values.Cilium.Version,
		Mode:        c.values.Cilium.Mode,
		ClusterName: c.values.Identity.Name,
		ClusterID:   c.values.Identity.ID,
		Routing:     c.values.Cilium.Routing,
	}
}

// ExpectedMesh returns what a mesh gate expects of this Cilium and its peers, as the configuration of all their clusters declares them.
// noPool means that nothing which the program registers assigns the mesh address.
func (c *CiliumCore) ExpectedMesh(noPool bool) mesh.Spec {
	v := c.values
	spec := mesh.Spec{
		Name: v.Identity.Name, ID: v.Identity.ID, Address: v.Network.LoadBalancers.Mesh, CA: v.MeshAuthority().Certificate,
		Namespace: chart.ReleaseNamespace, Domain: cluster.MeshDomain, Port: cluster.MeshPort, NoPool: noPool,
		Inline: v.Cilium.Inline() && len(c.leaves) == 0, // only an engine that has it leaves something to wait for
	}
	for _, machine := range v.Serving(v.Machines()) {
		spec.Nodes = append(spec.Nodes, machine.Name)
	}
	for _, peer := range v.Mesh.Clusters {
		spec.Peers = append(spec.Peers, mesh.Peer{Name: peer.Name, ID: peer.ID, Nodes: peer.Nodes, Address: peer.Address})
	}
	return spec
}

// Verifies returns the inputs of a gate after whose change it verifies this Cilium again: the version, and a checksum of the values.
func (c *CiliumCore) Verifies() map[string]pulumi.Input {
	return map[string]pulumi.Input{"cilium": pulumi.String(c.values.Cilium.Version), "network": pulumi.String(c.checksum)}
}

// checksumOf returns a part of the checksum of Cilium's values without certificates.
func checksumOf(values chart.Values) (string, error) {
	render := values.Tree
	if values.Cilium.Owner.IsEngine() { // the engine rolls out the user's values, at any time
		render = values.Own
	}
	rendered, err := render(values.Documents(chart.NoDocument))
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(rendered)
	return cluster.Checksum(string(text)), err
}
