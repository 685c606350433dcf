package stacks

import (
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/stacks/contract"
)

// export publishes the stack's contract.
func (c *chain) export() {
	for name, value := range c.outputs() {
		c.ctx.Export(name, value)
	}
}

func (c *chain) outputs() pulumi.Map {
	s := c.stack
	var endpoints, nodes []string
	for _, node := range s.ControlPlanes() {
		endpoints = append(endpoints, node.Address.String())
	}
	for _, node := range s.Nodes() {
		nodes = append(nodes, node.Name)
	}
	pool := s.Network.LoadBalancers
	return pulumi.Map{
		contract.ContractVersion:    pulumi.Int(contract.Version),
		contract.ClusterName:        pulumi.String(s.Cluster.Name),
		contract.ClusterID:          pulumi.Int(s.Cluster.ID),
		contract.StorageRole:        pulumi.String(string(s.Storage.Role)),
		contract.KubernetesEndpoint: c.cluster.APIEndpoint,
		contract.TalosEndpoints:     pulumi.String(strings.Join(endpoints, ",")),
		contract.Nodes:              pulumi.String(strings.Join(nodes, ",")),
		contract.ClusterVIP:         pulumi.String(s.Network.VIP.String()),
		contract.NodeCIDR:           pulumi.String(s.Network.NodeCIDR.String()),
		contract.PodCIDR:            pulumi.String(s.Network.PodCIDR.String()),
		contract.ServiceCIDR:        pulumi.String(s.Network.ServiceCIDR.String()),
		contract.LBPoolStart:        pulumi.String(pool.Start.String()),
		contract.LBPoolStop:         pulumi.String(pool.Stop.String()),
		contract.MeshIP:             pulumi.String(pool.Mesh.String()),
		contract.GatewayIP:          pulumi.String(pool.Gateway.String()),
		contract.TalosVersion:       pulumi.String(s.Talos.Version),
		contract.KubernetesVersion:  pulumi.String(s.Kubernetes.Version),
		contract.CiliumVersion:      pulumi.String(s.Cilium.Version),
		contract.Kubeconfig:         pulumi.ToSecret(c.cluster.Kubeconfig),
		contract.Talosconfig:        pulumi.ToSecret(c.cluster.Talosconfig),
		contract.GateSpec:           c.gate.Spec,
		contract.GateReport:         c.gate.Report,
		contract.HandoverReport:     c.handover.Report,
		contract.GitRevision:        c.handover.Revision,
	}
}
