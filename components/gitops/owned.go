package gitops

import (
	"encoding/base64"
	"encoding/json"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/helm"
	"github.com/slipway-platform/slipway/internal/flux/release"
)

// owned returns all components that Flux owns.
func (a *GitOpsHandoverArgs) owned() []helm.Owned {
	all := append([]helm.Owned{}, a.Owned...)
	if a.GitOps.Operator.Owner == cluster.OwnerFlux {
		values, err := cluster.ChartValues(nil).MergedInto(a.GitOps.Operator.Service().Values)
		if err != nil {
			panic("gitops: flux-operator's own values cannot be written: " + err.Error())
		}
		all = append(all, helm.Owned{Name: cluster.FluxOperator, Values: pulumi.ToMap(values)})
	}
	return all
}

// newValues registers the Secret with the values that Slipway sets in the chart of a component that Flux owns. Its HelmRelease reads it.
// Flux rolls out a changed value at once.
func newValues(ctx *pulumi.Context, name string, owned helm.Owned, opts ...pulumi.ResourceOption) (pulumi.Resource, error) {
	text := owned.Values.ToMapOutput().ApplyT(func(values map[string]any) (string, error) {
		written, err := json.Marshal(values) // JSON is YAML, too
		return base64.StdEncoding.EncodeToString(written), err
	}).(pulumi.StringOutput)
	return v1.NewSecret(ctx, name, &v1.SecretArgs{
		Metadata: metav1.ObjectMetaArgs{
			Name: pulumi.String(release.ValuesSecret(owned.Name)), Namespace: pulumi.String(cluster.FluxNamespace),
			Labels: pulumi.StringMap{"reconcile.fluxcd.io/watch": pulumi.String("Enabled")},
		},
		// data instead of stringData: the API server returns data, so that a refresh finds no difference.
		Data: pulumi.StringMap{release.ValuesKey: pulumi.ToSecret(text).(pulumi.StringOutput)},
	}, opts...)
}
