package argocd

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
)

// OwnedValues returns where Argo CD's plugin reads the values of the releases that Argo CD owns: in its namespace, which its repo-server
// mounts them from. before is the option of RefuseForeign. The name is that of the GitOpsHandover.
func OwnedValues(name string, namespace pulumi.Resource, before pulumi.ResourceOption) *component.OwnedValues {
	return &component.OwnedValues{
		Namespace: cluster.ArgoCDNamespace, Prefix: name + "-values-",
		Options: pulumi.Composite(pulumi.DependsOn([]pulumi.Resource{namespace}), before),
	}
}
