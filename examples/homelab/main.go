// Homelab creates one Kubernetes cluster of Slipway's components, without Flux and with a configuration of its own.
package main

import (
	"maps"
	"slices"

	corev1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components"
	"github.com/slipway-platform/slipway/components/cilium"
	"github.com/slipway-platform/slipway/components/core"
	"github.com/slipway-platform/slipway/components/machines/proxmox"
	"github.com/slipway-platform/slipway/components/readiness"
	"github.com/slipway-platform/slipway/components/talos"
)

func main() { pulumi.Run(deploy) }

// deploy registers the machines, Cilium, the core services, and a namespace that stands for what comes on top.
func deploy(ctx *pulumi.Context) error {
	declared, err := declare(ctx)
	if err != nil {
		return err
	}
	providers, err := components.NewProviders(ctx, declared.Proxmox, declared.ProxmoxAPIToken, declared.Talos.Factory)
	if err != nil {
		return err
	}
	mode, err := cilium.RememberMode(ctx, "cilium", declared.Cilium.Mode)
	if err != nil {
		return err
	}
	machines, err := talos.NewTalosCluster(ctx, "talos", &talos.TalosClusterArgs{
		Cluster: declared, DependsOn: []pulumi.Resource{mode},
		Hypervisor: proxmox.Hypervisor{Provider: providers.Proxmox}, TalosProvider: providers.Talos, CommandProvider: providers.Command,
	})
	if err != nil {
		return err
	}

	// Without a CNI no node is Ready yet: this gate waits until the API answers and all nodes have registered.
	registered, err := readiness.NewReadinessGate(ctx, "machines", gate(declared, providers, machines))
	if err != nil {
		return err
	}
	kubernetes, err := registered.Identify(ctx, "kubernetes-cluster", declared.Identity.Name)
	if err != nil {
		return err
	}
	steps := components.Steps{Name: declared.Identity.Name, Kubeconfig: machines.Kubeconfig, CommandProvider: providers.Command}
	crds, err := core.NewCRDs(ctx, "crds", &core.CRDsArgs{
		Sets: declared.CRDs.Installed(), Steps: steps,
		Lifetime: components.Lifetime{DependsOn: registered.Leaves(), DeletedWith: kubernetes},
	})
	if err != nil {
		return err
	}
	// After the CRDs: when this provider starts, it reads the schemas of all kinds.
	if err := providers.Connect(ctx, declared.Identity.Name, machines.Kubeconfig, crds.Leaves()); err != nil {
		return err
	}
	objectsAfter := func(leaves ...[]pulumi.Resource) components.InCluster {
		return components.InCluster{
			Lifetime:           components.Lifetime{DependsOn: slices.Concat(leaves...), DeletedWith: kubernetes},
			KubernetesProvider: providers.Kubernetes,
		}
	}
	network, err := cilium.NewCiliumCore(ctx, "cilium", &cilium.CiliumCoreArgs{
		Cluster: declared, TLSProvider: providers.TLS, Kubeconfig: machines.Kubeconfig,
		InCluster: objectsAfter(registered.Leaves(), crds.Leaves(), []pulumi.Resource{mode}),
	})
	if err != nil {
		return err
	}

	// Nothing below is created before every node is Ready and Cilium works on all of them.
	healthy := gate(declared, providers, machines)
	healthy.DependsOn = slices.Concat(healthy.DependsOn, registered.Leaves(), network.Leaves())
	healthy.Cilium = network.Expected()
	maps.Copy(healthy.Verifies, network.Verifies())
	open, err := readiness.NewReadinessGate(ctx, "gate", healthy)
	if err != nil {
		return err
	}
	services, err := core.NewCoreServices(ctx, "core", &core.CoreServicesArgs{
		Services: declared.Services(), Timeout: declared.Readiness.Timeout.Duration,
		InCluster: objectsAfter(open.Leaves(), crds.Leaves()), Steps: steps,
	}, pulumi.DependsOn(open.Leaves()))
	if err != nil {
		return err
	}
	_, err = corev1.NewNamespace(ctx, "media", &corev1.NamespaceArgs{Metadata: metav1.ObjectMetaArgs{Name: pulumi.String("media")}},
		pulumi.Provider(providers.Kubernetes), pulumi.DependsOn(services.Leaves()),
		pulumi.DeletedWith(kubernetes), pulumi.ReplaceWith([]pulumi.Resource{kubernetes}))
	ctx.Export("kubeconfig", pulumi.ToSecret(machines.Kubeconfig))
	ctx.Export("gateSpec", open.Spec)
	return err
}

// gate returns the arguments of a gate over all machines.
func gate(declared *cluster.Cluster, providers *components.Providers, machines *talos.TalosCluster) *readiness.ReadinessGateArgs {
	args := readiness.Declared(declared, declared.Machines(), nil)
	args.Kubeconfig, args.Talosconfig, args.CommandProvider = machines.Kubeconfig, machines.Talosconfig, providers.Command
	args.Machines, args.Installer, args.DependsOn = machines.Machines(), machines.Installer(), machines.Leaves()
	return args
}
