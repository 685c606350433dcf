package probe

import (
	"context"

	"github.com/slipway-platform/slipway/internal/health/mesh"
	"github.com/slipway-platform/slipway/internal/observe"
	"github.com/slipway-platform/slipway/internal/picture"
)

const meshDoes = `Waits until every agent sees every peer of the cluster's mesh as connected and ready, and prints what is missing.
It changes nothing, and does not wait for a peer that does not exist.`

func runMesh(ctx context.Context, c call) error {
	spec := new(mesh.Spec)
	flags := newWaitFlags(c, spec, &spec.Target)
	flags.takesSpec("--spec FILE ", meshDoes, "")
	strict := flags.Bool("strict", false, "an absent peer, and one with another number of nodes than declared, fails")
	err := flags.read(func() error {
		spec.Strict = spec.Strict || *strict
		return nil
	})
	if err != nil {
		return err
	}
	flags.output.declared = picture.Cluster{Mesh: spec}
	return flags.wait(ctx, observe.NewMesh(spec, flags.kube), nil)
}
