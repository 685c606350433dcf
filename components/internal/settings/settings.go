// Package settings provides the ConfigMap with the cluster settings, from which an engine takes the values for manifests of the tree.
package settings

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
	"github.com/slipway-platform/slipway/components/internal/component"
)

// Settings are values of the cluster that manifests of the GitOps tree can substitute, by UPPER_SNAKE name. They must not contain
// secrets, because they are stored in a ConfigMap.
type Settings map[string]string

var form = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$`)

// Validate returns an error for each problem of the settings.
func (s Settings) Validate() error {
	var problems []error
	if len(s) == 0 {
		problems = append(problems, errors.New("settings: are missing; pass the cluster's"))
	}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if !form.MatchString(name) {
			problems = append(problems, fmt.Errorf("settings.%s: is not a name that is substituted; write it in UPPER_SNAKE", name))
		}
		if s[name] == "" {
			problems = append(problems, fmt.Errorf("settings.%s: is empty, so that nothing would be substituted; give a value", name))
		}
	}
	return errors.Join(problems...)
}

// Triggers returns each setting as a value after whose change a probe runs again.
func (s Settings) Triggers() (triggers pulumi.Array) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		triggers = append(triggers, pulumi.String(name+"="+s[name]))
	}
	return triggers
}

// New registers the ConfigMap in a namespace. labels may be nil.
func New(
	ctx *pulumi.Context, name string, settings Settings, namespace string, labels pulumi.StringMap, opts ...pulumi.ResourceOption,
) (*v1.ConfigMap, error) {
	meta := metav1.ObjectMetaArgs{
		Name: pulumi.String(cluster.ClusterSettings), Namespace: pulumi.String(namespace), Annotations: component.Owned(nil),
	}
	if labels != nil {
		meta.Labels = labels
	}
	return v1.NewConfigMap(ctx, name, &v1.ConfigMapArgs{Metadata: meta, Data: pulumi.ToStringMap(settings)}, opts...)
}
