package probe

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/internal/health/workloads"
	"github.com/slipway-platform/slipway/internal/observe"
)

func defineWorkloads(c *cobra.Command) {
	spec := new(workloads.Spec)
	flags := newWaitFlags(c, spec, &spec.Target)
	flags.Func("release", "Helm release that must run, as `NAMESPACE/NAME`; once for each", func(text string) error {
		namespace, name, found := strings.Cut(text, "/")
		if !found {
			return errors.New("is not NAMESPACE/NAME")
		}
		spec.Releases = append(spec.Releases, workloads.Release{Namespace: namespace, Name: name})
		return nil
	})
	flags.runs(nil, func(ctx context.Context) error {
		observed, err := observe.NewWorkloads(spec, flags.kube)
		if err != nil {
			return command.Wrong(err)
		}
		return flags.wait(ctx, observed, nil)
	})
}
