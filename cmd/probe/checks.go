package probe

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/internal/health/own"
	"github.com/slipway-platform/slipway/internal/observe"
)

const checksDoes = "Waits until the objects of all checks of the stack file exist, and the checks hold, and prints what is " +
	"missing. It changes nothing."

func defineChecks(c *cobra.Command) {
	spec := new(own.Spec)
	flags := newWaitFlags(c, spec, &spec.Target)
	flags.takesSpec("--spec FILE ", checksDoes, "")
	flags.runs(nil, func(ctx context.Context) error {
		return flags.wait(ctx, observe.NewOwn(spec, flags.kube), nil)
	})
}
