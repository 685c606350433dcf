package gitops

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
)

// OwnedValues returns where Flux reads the values of the releases that it owns: in its namespace. before is that of RefuseForeignFlux.
// The name is that of the GitOpsHandover.
func OwnedValues(ctx *pulumi.Context, name string, namespace pulumi.Resource, before pulumi.ResourceOption) *component.OwnedValues {
	// The Secrets have been the handover's children, which came after the gates that now wait for what the values do.
	former := pulumi.Aliases([]pulumi.Alias{{ParentURN: component.URN(ctx, typeGitOpsHandover, name)}})
	return &component.OwnedValues{
		Namespace: cluster.FluxNamespace, Prefix: name + "-values-",
		Labels:  pulumi.StringMap{"reconcile.fluxcd.io/watch": pulumi.String("Enabled")}, // Flux rolls out a changed value at once
		Options: pulumi.Composite(pulumi.DependsOn([]pulumi.Resource{namespace}), former, before),
	}
}
