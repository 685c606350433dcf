package stacks

import (
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve"
	"github.com/pulumi/pulumi-command/sdk/go/command"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi-tls/sdk/v5/go/tls"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	talosprovider "github.com/pulumiverse/pulumi-talos/sdk/go/talos"

	"github.com/slipway-platform/slipway/cluster"
)

// providers are the explicit providers of a stack; there are no default ones.
type providers struct {
	proxmox, talos, command, tls pulumi.ProviderResource

	kubernetes pulumi.ProviderResource // set by connect
	renderer   pulumi.ProviderResource // set by connectNowhere; renders charts
}

func newProviders(ctx *pulumi.Context, c *cluster.Cluster) (*providers, error) {
	var p providers
	var err error
	proxmox := &proxmoxve.ProviderArgs{
		Endpoint: pulumi.String(c.Proxmox.Endpoint),
		Insecure: pulumi.Bool(c.Proxmox.Insecure),
	}
	if c.ProxmoxAPIToken.IsSet() { // otherwise the provider reads PROXMOX_VE_API_TOKEN itself
		proxmox.ApiToken = pulumi.ToSecret(pulumi.String(c.ProxmoxAPIToken.Reveal())).(pulumi.StringOutput).ToStringPtrOutput()
	}
	if p.proxmox, err = proxmoxve.NewProvider(ctx, "proxmox", proxmox); err != nil {
		return nil, err
	}
	p.talos, err = talosprovider.NewProvider(ctx, "talos", &talosprovider.ProviderArgs{
		ImageFactoryUrl: pulumi.String(c.Talos.Factory),
	})
	if err != nil {
		return nil, err
	}
	if p.command, err = command.NewProvider(ctx, "command", nil); err != nil {
		return nil, err
	}
	if p.tls, err = tls.NewProvider(ctx, "tls", nil); err != nil {
		return nil, err
	}
	return &p, nil
}

// connect makes the Kubernetes provider, once the API answers: a provider that cannot reach the API when it is configured
// counts it as unreachable from then on.
func (p *providers) connect(ctx *pulumi.Context, c *cluster.Cluster, kubeconfig pulumi.StringOutput, after []pulumi.Resource) error {
	var err error
	p.kubernetes, err = kubernetes.NewProvider(ctx, "kubernetes", &kubernetes.ProviderArgs{
		Kubeconfig: kubeconfig,
		// Constant, so that a kubeconfig which is renewed or not yet known never replaces the provider and all it made.
		ClusterIdentifier:     pulumi.String(c.Identity.Name),
		EnableServerSideApply: pulumi.Bool(true),
		// A changed password or setting updates its object in place; replaced, it would be missing for a moment.
		EnableSecretMutable:    pulumi.Bool(true),
		EnableConfigMapMutable: pulumi.Bool(true),
	}, pulumi.DependsOn(after))
	return err
}

// noCluster is a kubeconfig without a cluster. Given none at all, the Kubernetes provider would take the user's own.
const noCluster = `{"apiVersion": "v1", "kind": "Config"}`

// connectNowhere makes a Kubernetes provider that renders charts before there is a cluster.
func (p *providers) connectNowhere(ctx *pulumi.Context, after pulumi.Resource) error {
	var err error
	p.renderer, err = kubernetes.NewProvider(ctx, "charts", &kubernetes.ProviderArgs{
		Kubeconfig: pulumi.String(noCluster),
	}, pulumi.DependsOn([]pulumi.Resource{after}))
	return err
}
