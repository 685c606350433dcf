package gitops

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/core/v1"
	metav1 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/meta/v1"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
)

// Settings are values of the cluster that manifests of the GitOps tree can substitute, by UPPER_SNAKE name. They must not contain
// secrets, because they are stored in a ConfigMap.
type Settings map[string]string

var settingForm = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$`)

func (s Settings) validate() error {
	var problems []error
	if len(s) == 0 {
		problems = append(problems, errors.New("settings: are missing; pass the cluster's"))
	}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if !settingForm.MatchString(name) {
			problems = append(problems, fmt.Errorf("settings.%s: is not a name Flux substitutes; write it in UPPER_SNAKE", name))
		}
		if s[name] == "" {
			problems = append(problems, fmt.Errorf("settings.%s: is empty, so that nothing would be substituted; give a value", name))
		}
	}
	return errors.Join(problems...)
}

func newSettings(ctx *pulumi.Context, name string, settings Settings, opts ...pulumi.ResourceOption) (*v1.ConfigMap, error) {
	return v1.NewConfigMap(ctx, name, &v1.ConfigMapArgs{
		Metadata: metav1.ObjectMetaArgs{
			Name: pulumi.String(cluster.FluxSettings), Namespace: pulumi.String(cluster.FluxNamespace),
			// Flux applies a changed setting at once, not at the next interval of each Kustomization.
			Labels: pulumi.StringMap{"reconcile.fluxcd.io/watch": pulumi.String("Enabled")},
		},
		Data: pulumi.ToStringMap(settings),
	}, opts...)
}
