package talos

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/client"
	taloscluster "github.com/pulumiverse/pulumi-talos/sdk/go/talos/cluster"
	"github.com/pulumiverse/pulumi-talos/sdk/go/talos/machine"

	"github.com/slipway-platform/slipway/internal/nodes/rotate"
)

// talosconfig returns talosctl's configuration: the control planes as endpoints, all machines as nodes.
func (r *registrar) talosconfig(ctx *pulumi.Context, credentials machine.ClientConfigurationOutput) pulumi.StringOutput {
	result := client.GetConfigurationOutput(ctx, client.GetConfigurationOutputArgs{
		ClusterName: pulumi.String(r.Identity.Name),
		ClientConfiguration: client.GetConfigurationClientConfigurationArgs{
			CaCertificate:     credentials.CaCertificate(),
			ClientCertificate: credentials.ClientCertificate(),
			ClientKey:         credentials.ClientKey(),
		},
		Endpoints: addresses(r.Serving(r.ControlPlanes())),
		Nodes:     addresses(r.Serving(r.Machines())),
	}, pulumi.Parent(r.Component), pulumi.Provider(r.args.TalosProvider))
	return pulumi.ToSecret(result.TalosConfig()).(pulumi.StringOutput)
}

// kubeconfig fetches the kubeconfig from the first control plane that is not left out, at its own address: the VIP answers only once
// Kubernetes runs. Each generation of Kubernetes' CA has its own resource, because the provider fetches a kubeconfig only once.
func (r *registrar) kubeconfig(ctx *pulumi.Context, secrets generations, bootstrap pulumi.Resource) (*taloscluster.Kubeconfig, error) {
	first, client := pulumi.String(r.Serving(r.ControlPlanes())[0].Address.String()), secrets.client()
	return taloscluster.NewKubeconfig(ctx, ofGeneration(r.NameOf("kubeconfig"), len(secrets[rotate.Kubernetes])), &taloscluster.KubeconfigArgs{
		ClientConfiguration: taloscluster.KubeconfigClientConfigurationArgs{
			CaCertificate:     client.CaCertificate(),
			ClientCertificate: client.ClientCertificate(),
			ClientKey:         client.ClientKey(),
		},
		Endpoint: first,
		Node:     first,
	}, r.Child(r.args.TalosProvider, pulumi.DependsOn([]pulumi.Resource{bootstrap}),
		pulumi.AdditionalSecretOutputs([]string{"kubeconfigRaw", "kubernetesClientConfiguration", "clientConfiguration"})))
}
