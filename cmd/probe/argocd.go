package probe

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/internal/engines/argocd/handover"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/observe"
)

func defineArgoCD(c *cobra.Command) {
	spec := new(handover.Spec)
	flags := newWaitFlags(c, spec, &spec.Target)
	flags.StringVar(&spec.Namespace, "namespace", "", "Argo CD's `namespace`; empty for argocd")
	flags.StringVar(&spec.Root, "root", "", "`name` of the root Application; empty for root")
	flags.StringVar(&spec.URL, "url", "", "`URL` of the repository the root must have; empty for any")
	flags.StringVar(&spec.Ref, "ref", "", "`reference` the root must follow, such as a branch; empty for any")
	flags.StringVar(&spec.Path, "path", "", "`path` the root must apply; empty for any")
	flags.runs(nil, func(ctx context.Context) error {
		// A single look cannot wait for the comparisons that it would ask for, so it writes nothing.
		observed := observe.NewArgoCD(spec, flags.kube, flags.once)
		return flags.wait(ctx, observed, func(report *health.Report) error {
			report.Revision = observed.AppliedRevision()
			return nil
		})
	})
}
