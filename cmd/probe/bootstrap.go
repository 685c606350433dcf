package probe

import (
	"context"

	"github.com/slipway-platform/slipway/internal/nodes/bootstrap"
)

func runBootstrap(ctx context.Context, c call) error {
	flags := c.flags()
	existed := flags.Bool("existed", false, "the cluster had etcd before: do not begin it anew, empty, unless the spec says so")
	if err := c.parse(flags); err != nil {
		return err
	}
	spec := new(bootstrap.Spec)
	if err := c.readStdin(spec); err != nil {
		return err
	}
	spec.Existed = *existed
	report, err := bootstrap.Run(ctx, *spec, c.stderr)
	return c.finish(report, err)
}
