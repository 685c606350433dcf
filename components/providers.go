package components

import (
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve"
	"github.com/pulumi/pulumi-command/sdk/go/command"
	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes"
	"github.com/pulumi/pulumi-tls/sdk/v5/go/tls"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	talosprovider "github.com/pulumiverse/pulumi-talos/sdk/go/talos"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
)

// Providers are the explicit providers of a cluster, which the components take. Default providers are not used.
type Providers struct {
	Proxmox, Talos, Command, TLS pulumi.ProviderResource

	Kubernetes pulumi.ProviderResource // set by Connect
	Renderer   pulumi.ProviderResource // set by MakeRenderer; renders charts
}

// NewProviders creates the providers that need no cluster, under fixed names. Without a token, the provider of Proxmox VE reads the
// variable PROXMOX_VE_API_TOKEN. factory is the URL of the image factory.
func NewProviders(ctx *pulumi.Context, at cluster.Proxmox, token cluster.Secret, factory string) (*Providers, error) {
	var p Providers
	var err error
	proxmox := &proxmoxve.ProviderArgs{
		Endpoint: pulumi.String(at.Endpoint),
		Insecure: pulumi.Bool(at.Insecure),
	}
	if token.IsSet() {
		proxmox.ApiToken = pulumi.ToSecret(pulumi.String(token.Reveal())).(pulumi.StringOutput).ToStringPtrOutput()
	}
	if p.Proxmox, err = proxmoxve.NewProvider(ctx, "proxmox", proxmox, component.ProxmoxPlugin()); err != nil {
		return nil, err
	}
	p.Talos, err = talosprovider.NewProvider(ctx, "talos", &talosprovider.ProviderArgs{
		ImageFactoryUrl: pulumi.String(factory),
	})
	if err != nil {
		return nil, err
	}
	if p.Command, err = command.NewProvider(ctx, "command", nil); err != nil {
		return nil, err
	}
	if p.TLS, err = tls.NewProvider(ctx, "tls", nil); err != nil {
		return nil, err
	}
	return &p, nil
}

// Connect creates the Kubernetes provider of the cluster with a name, after the resources in after, once the API answers: a provider that
// cannot reach the API when it is configured never tries again.
func (p *Providers) Connect(ctx *pulumi.Context, name string, kubeconfig pulumi.StringOutput, after []pulumi.Resource) error {
	var err error
	p.Kubernetes, err = kubernetes.NewProvider(ctx, "kubernetes", &kubernetes.ProviderArgs{
		Kubeconfig: kubeconfig,
		// Constant, so that a renewed or unknown kubeconfig never replaces the provider and all its objects.
		ClusterIdentifier:     pulumi.String(name),
		EnableServerSideApply: pulumi.Bool(true),
		// A changed password or setting updates its object in place. A replacement would delete the object for a moment.
		EnableSecretMutable:    pulumi.Bool(true),
		EnableConfigMapMutable: pulumi.Bool(true),
	}, pulumi.DependsOn(after))
	return err
}

// noCluster is a kubeconfig without a cluster. Without a kubeconfig, the Kubernetes provider would read the user's own.
const noCluster = `{"apiVersion": "v1", "kind": "Config"}`

// MakeRenderer creates a Kubernetes provider that renders charts before the cluster exists.
func (p *Providers) MakeRenderer(ctx *pulumi.Context, after pulumi.Resource) error {
	var err error
	p.Renderer, err = kubernetes.NewProvider(ctx, "charts", &kubernetes.ProviderArgs{
		Kubeconfig: pulumi.String(noCluster),
	}, pulumi.DependsOn([]pulumi.Resource{after}))
	return err
}
