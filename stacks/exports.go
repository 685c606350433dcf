package stacks

import (
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/stacks/contract"
)

// outputs returns the stack's outputs, which are its contract.
func (c *chain) outputs() pulumi.Map {
	var endpoints, nodes []string
	for _, machine := range c.ControlPlanes() {
		endpoints = append(endpoints, machine.Address.String())
	}
	for _, machine := range c.Machines() {
		nodes = append(nodes, machine.Name)
	}
	pool := c.Network.LoadBalancers
	outputs := pulumi.Map{
		contract.ContractVersion:    pulumi.Int(contract.Version),
		contract.ClusterName:        pulumi.String(c.Identity.Name),
		contract.ClusterID:          pulumi.Int(c.Identity.ID),
		contract.StorageRole:        pulumi.String(string(c.Storage.Role)),
		contract.KubernetesEndpoint: c.talos.APIEndpoint,
		contract.TalosEndpoints:     pulumi.String(strings.Join(endpoints, ",")),
		contract.Nodes:              pulumi.String(strings.Join(nodes, ",")),
		contract.ClusterVIP:         pulumi.String(c.Network.VIP.String()),
		contract.NodeCIDR:           pulumi.String(c.Network.NodeCIDR.String()),
		contract.PodCIDR:            pulumi.String(c.Network.PodCIDR.String()),
		contract.ServiceCIDR:        pulumi.String(c.Network.ServiceCIDR.String()),
		contract.LBPoolStart:        pulumi.String(pool.Start.String()),
		contract.LBPoolStop:         pulumi.String(pool.Stop.String()),
		contract.MeshIP:             pulumi.String(pool.Mesh.String()),
		contract.GatewayIP:          pulumi.String(pool.Gateway.String()),
		contract.TalosVersion:       pulumi.String(c.Talos.Version),
		contract.KubernetesVersion:  pulumi.String(c.Kubernetes.Version),
		contract.CiliumVersion:      pulumi.String(c.Cilium.Version),
		contract.Kubeconfig:         pulumi.ToSecret(c.talos.Kubeconfig),
		contract.Talosconfig:        pulumi.ToSecret(c.talos.Talosconfig),
		contract.GateSpec:           c.gate.Spec,
		contract.GateReport:         c.gate.Report,
	}
	if c.handover != nil {
		outputs[contract.HandoverReport], outputs[contract.GitRevision] = c.handover.Report, c.handover.Revision
	}
	if c.mesh != nil {
		outputs[contract.MeshSpec], outputs[contract.MeshReport] = c.mesh.Spec, c.mesh.Report
	}
	if certificate := c.foundation.SealedSecretsCert; certificate != nil {
		outputs[contract.SealedSecretsCert] = certificate
	}
	return outputs
}
