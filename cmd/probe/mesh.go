package probe

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/internal/health/mesh"
	"github.com/slipway-platform/slipway/internal/health/picture"
	"github.com/slipway-platform/slipway/internal/observe"
)

const meshDoes = `Waits until every agent sees every peer of the cluster's mesh as connected and ready, and prints what is missing.
It changes nothing, and does not wait for a peer that does not exist.`

func defineMesh(c *cobra.Command) {
	spec := new(mesh.Spec)
	flags := newWaitFlags(c, spec, &spec.Target)
	flags.takesSpec("--spec FILE ", meshDoes, "")
	strict := flags.Bool("strict", false, "an absent peer, and one with another number of nodes than declared, fails")
	flags.runs(func(context.Context) error {
		spec.Strict = spec.Strict || *strict
		return nil
	}, func(ctx context.Context) error {
		flags.output.declared = picture.Cluster{Mesh: spec}
		return flags.wait(ctx, observe.NewMesh(spec, flags.kube), nil)
	})
}
