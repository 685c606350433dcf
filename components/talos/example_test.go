package talos_test

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components"
	"github.com/slipway-platform/slipway/components/machines/proxmox"
	"github.com/slipway-platform/slipway/components/talos"
)

// A cluster without a CNI. How a program declares its cluster shows examples/homelab.
func ExampleNewTalosCluster() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		declared := cluster.New(ctx.Stack())
		// … fields of declared …
		var findings cluster.Findings
		declared.Complete(&findings) // sets the defaults, and finds all that is wrong
		if err := findings.Err(); err != nil {
			return err
		}
		providers, err := components.NewProviders(ctx, declared.Proxmox, declared.ProxmoxAPIToken, declared.Talos.Factory)
		if err != nil {
			return err
		}
		machines, err := talos.NewTalosCluster(ctx, "talos", &talos.TalosClusterArgs{
			Cluster:         declared,
			Hypervisor:      proxmox.Hypervisor{Provider: providers.Proxmox},
			TalosProvider:   providers.Talos,
			CommandProvider: providers.Command,
		})
		if err != nil {
			return err
		}
		ctx.Export("kubeconfig", pulumi.ToSecret(machines.Kubeconfig))
		return nil
	})
}
