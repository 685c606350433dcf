package gitops

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/internal/component"
)

// FluxValues returns where Flux reads the values of the releases that it owns: in its namespace. before is the option of RefuseForeignFlux.
// The name is that of the GitOpsHandover.
func FluxValues(ctx *pulumi.Context, name string, namespace pulumi.Resource, before pulumi.ResourceOption) *component.FluxValues {
	// The Secrets have been the handover's children, which came after the gates that now wait for what the values do.
	former := pulumi.Aliases([]pulumi.Alias{{ParentURN: component.URN(ctx, typeGitOpsHandover, name)}})
	return &component.FluxValues{
		Prefix:  name + "-values-",
		Options: pulumi.Composite(pulumi.DependsOn([]pulumi.Resource{namespace}), former, before),
	}
}
