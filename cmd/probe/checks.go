package probe

import (
	"context"

	"github.com/slipway-platform/slipway/internal/health/own"
	"github.com/slipway-platform/slipway/internal/observe"
)

const checksDoes = "Waits until the objects of all checks of the stack file exist, and the checks hold, and prints what is " +
	"missing. It changes nothing."

func runChecks(ctx context.Context, c call) error {
	spec := new(own.Spec)
	flags := newWaitFlags(c, spec, &spec.Target)
	flags.takesSpec("--spec FILE ", checksDoes, "")
	if err := flags.read(nil); err != nil {
		return err
	}
	return flags.wait(ctx, observe.NewOwn(spec, flags.kube), nil)
}
