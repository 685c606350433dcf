package probe

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/internal/health/externalsecrets"
	"github.com/slipway-platform/slipway/internal/observe"
)

func defineExternalSecrets(c *cobra.Command) {
	spec := new(externalsecrets.Spec)
	flags := newWaitFlags(c, spec, &spec.Target)
	flags.StringVar(&spec.Store, "store", "onepassword", "`name` of the ClusterSecretStore")
	flags.StringVar(&spec.Namespace, "namespace", "external-secrets", "`namespace` of the ExternalSecret")
	flags.StringVar(&spec.ExternalSecret, "external-secret", "slipway-probe", "`name` of the ExternalSecret that must have synced")
	flags.runs(nil, func(ctx context.Context) error {
		return flags.wait(ctx, observe.NewExternalSecrets(spec, flags.kube), nil)
	})
}
