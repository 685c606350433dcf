package probe

import (
	"context"
	"fmt"

	"github.com/slipway-platform/slipway/internal/nodes/rotate"
)

func runRotate(ctx context.Context, c call) error {
	flags := c.flags()
	done := flags.Bool("done", false, "a run has succeeded for this generation: nothing is to do, whatever else has changed")
	if err := c.parse(flags); err != nil {
		return err
	}
	spec := new(rotate.Spec)
	if err := c.readStdin(spec); err != nil {
		return err
	}
	if *done {
		fmt.Fprintln(c.stderr, "the generation of the CA has not changed")
		return nil
	}
	report, err := rotate.Run(ctx, *spec, c.stderr)
	return c.finish(report, err)
}
