package talos

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumix"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/step"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/nodes/upgrade"
	"github.com/slipway-platform/slipway/internal/nodes/versions"
	"github.com/slipway-platform/slipway/internal/probe"
)

// upgrade brings the nodes of a running cluster to the declared versions of Talos and Kubernetes and to the declared extensions, one after
// the other. It comes after the machines, and before any machine configuration is applied: a configuration alone installs no Talos, and
// starts another Kubernetes on all nodes at once. On a new cluster it does nothing. A preview shows the versions that change.
func (b *builder) upgrade(talosconfig pulumi.StringOutput, vms []pulumi.Resource) (pulumi.Resource, error) {
	declared, nodes := b.Lifecycle, turnNodes(b.Machines())
	encode := func(talosconfig, schematic, installer string) (string, error) {
		return probe.Encode(&upgrade.Spec{
			Cluster: b.Identity.Name, Talosconfig: talosconfig, Nodes: nodes, Installer: installer,
			Releases: versions.Releases{
				Talos: b.Talos.Version, Schematic: schematic, Kubernetes: b.Kubernetes.Version,
				Cilium: versions.Cilium{Version: b.Cilium.Version, Flux: b.Cilium.Owner == cluster.OwnerFlux},
			},
			MaxUnavailable: declared.MaxUnavailable, AllowRemovedAPIs: declared.AllowRemovedAPIs,
			DrainTimeout:  probe.Duration(declared.DrainTimeout.Duration),
			ReturnTimeout: probe.Duration(declared.ReturnTimeout.Duration),
			Snapshots: upgrade.Snapshots{
				Folder: declared.Snapshots.Folder, Keep: declared.Snapshots.Keep, Recipients: declared.Snapshots.Recipients,
			},
		})
	}
	spec := pulumix.Apply3Err(talosconfig, b.schematic, b.installerImage(), encode)
	return step.New(b.ctx, b.name+"-upgrade", step.Args{
		Subcommand: "upgrade", Spec: pulumix.Cast[pulumi.StringOutput](spec),
		Timeout: upgrade.Longest(len(nodes), declared.DrainTimeout.Duration, declared.ReturnTimeout.Duration),
		Triggers: pulumi.Array{
			pulumi.Map{"talos": pulumi.String(b.Talos.Version)},
			pulumi.Map{"extensions": b.schematic},
			pulumi.Map{"kubernetes": pulumi.String(b.Kubernetes.Version)},
		},
		Provider: b.args.CommandProvider, DependsOn: slices.Concat(vms, b.args.DependsOn),
	}, b.parent)
}

// turnNodes returns machines as the nodes that take turns.
func turnNodes(machines []cluster.Machine) []turn.Node {
	var nodes []turn.Node
	for _, machine := range machines {
		nodes = append(nodes, turn.Node{Name: machine.Name, Role: machine.Role, Address: machine.Address.String()})
	}
	return nodes
}
