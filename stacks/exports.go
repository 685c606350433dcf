package stacks

import (
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/gitops"
	"github.com/slipway-platform/slipway/components/readiness"
	"github.com/slipway-platform/slipway/components/talos"
	"github.com/slipway-platform/slipway/stacks/config"
	"github.com/slipway-platform/slipway/stacks/contract"
)

// export publishes the stack's contract.
func (p *plan) export(ctx *pulumi.Context, cluster *talos.TalosCluster, gate *readiness.ReadinessGate, handover *gitops.GitOpsHandover) {
	for name, value := range outputs(p.stack, cluster, gate, handover) {
		ctx.Export(name, value)
	}
}

func outputs(s *config.Stack, cluster *talos.TalosCluster, gate *readiness.ReadinessGate, handover *gitops.GitOpsHandover) pulumi.Map {
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
		contract.KubernetesEndpoint: cluster.APIEndpoint,
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
		contract.Kubeconfig:         pulumi.ToSecret(cluster.Kubeconfig),
		contract.Talosconfig:        pulumi.ToSecret(cluster.Talosconfig),
		contract.GateReport:         gate.Report,
		contract.HandoverReport:     handover.Report,
		contract.GitRevision:        handover.Revision,
	}
}
