package talos

import (
	"slices"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumix"

	"github.com/slipway-platform/slipway/components/internal/machines"
	"github.com/slipway-platform/slipway/components/internal/step"
	"github.com/slipway-platform/slipway/internal/nodes/snapshot"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/nodes/upgrade"
	"github.com/slipway-platform/slipway/internal/nodes/versions"
	"github.com/slipway-platform/slipway/internal/probe"
)

// upgrade brings the nodes of a running cluster to the declared versions of Talos and Kubernetes and to the declared extensions, one after
// the other. It comes after the machines, and before any machine configuration is applied: a configuration alone installs no Talos, and
// starts another Kubernetes on all nodes at once. On a new cluster it does nothing. A preview shows the versions that change. It also
// reboots the nodes that have booted before a declared time. After an upgrade that has failed, it runs again even if the
// former versions are declared (step.New): nodes that have the new ones must not keep them unseen.
func (r *registrar) upgrade(
	ctx *pulumi.Context, talosconfig, schematic pulumi.StringOutput, made []machines.Machine, turns *turns,
) (pulumi.Resource, error) {
	var after []pulumi.Resource
	for _, machine := range made {
		after = append(after, machine.Resource)
	}
	since, _ := time.Parse(time.RFC3339, r.Lifecycle.BootedSince) // its form is checked
	spec := upgrade.Spec{
		Declared:    turn.DeclaredOf(r.Cluster, r.Serving(r.Machines())),
		BootedSince: since, AllowRemovedAPIs: r.Lifecycle.AllowRemovedAPIs,
		Releases: versions.Releases{
			Talos: r.Talos.Version, Kubernetes: r.Kubernetes.Version,
			Cilium: versions.Cilium{
				Version: r.Cilium.Version, Flux: r.Cilium.Owner.IsEngine(), OwnGatewayAPI: !r.CRDs.StandardGatewayAPI(),
			},
		},
		Snapshots: snapshot.PlaceOf(r.Cluster),
	}
	triggers := pulumi.Array{
		pulumi.Map{"talos": pulumi.String(r.Talos.Version)},
		pulumi.Map{"extensions": schematic},
		pulumi.Map{"kubernetes": pulumi.String(r.Kubernetes.Version)},
	}
	if !since.IsZero() {
		triggers = append(triggers, pulumi.Map{"bootedSince": pulumi.String(r.Lifecycle.BootedSince)})
	}
	encode := func(talosconfig, schematic string) (string, error) {
		installers, err := r.installers(schematic)
		if err != nil {
			return "", err
		}
		spec := spec
		spec.Talosconfig, spec.Schematic, spec.Installers = talosconfig, schematic, installers
		return probe.Encode(&spec)
	}
	encoded := pulumix.Apply2Err(talosconfig, schematic, encode)
	arrived, err := r.awaitNew(ctx, r.NameOf("upgrade"), made, turns.say)
	if err != nil {
		return nil, err
	}
	return step.New(ctx, r.NameOf("upgrade"), step.Args{
		Run: step.Run{
			Subcommand: "upgrade", Spec: pulumix.Cast[pulumi.StringOutput](encoded), Timeout: spec.Longest(),
			Provider: r.CommandProvider, DependsOn: slices.Concat(after, r.args.DependsOn),
		},
		Triggers: triggers, Before: arrived,
	}, r.Component)
}
