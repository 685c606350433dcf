package probe

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/internal/engines/flux/handover"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/observe"
)

func defineHandover(c *cobra.Command) {
	spec := new(handover.Spec)
	flags := newWaitFlags(c, spec, &spec.Target)
	flags.StringVar(&spec.Namespace, "namespace", "", "Flux's `namespace`; empty for flux-system")
	flags.StringVar(&spec.Instance, "instance", "", "`name` of the FluxInstance; empty for flux")
	flags.StringVar(&spec.SourceKind, "source-kind", "", "`kind` of the source: GitRepository, OCIRepository or Bucket; empty for the first")
	flags.StringVar(&spec.URL, "url", "", "`URL` the source must have; empty for any")
	flags.StringVar(&spec.Ref, "ref", "", "`reference` the source must follow: branch, tag or name of a bucket; empty for any")
	flags.StringVar(&spec.Path, "path", "", "`path` the root Kustomization must apply; empty for any")
	flags.runs(nil, func(ctx context.Context) error {
		observed := observe.NewHandover(spec, flags.kube)
		return flags.wait(ctx, observed, func(report *health.Report) error {
			report.Revision = observed.AppliedRevision()
			return nil
		})
	})
}
