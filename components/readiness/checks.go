package readiness

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health/own"
)

// typeChecksGate is part of the state: a rename needs Aliases.
const typeChecksGate = "slipway:readiness:ChecksGate"

// ChecksGateArgs are the arguments of a gate of the declared checks. DependsOn are the leaves of what brings their objects.
type ChecksGateArgs = LaterGateArgs[own.Spec]

// NewChecksGate registers the gate that opens only if the objects of all declared checks exist, and the checks hold.
func NewChecksGate(ctx *pulumi.Context, name string, args *ChecksGateArgs, opts ...pulumi.ResourceOption) (*LaterGate, error) {
	return newLaterGate(ctx, typeChecksGate, "checks", name, args, opts...)
}

// DeclaredChecks returns what a gate of the declared checks expects of a declared cluster.
func DeclaredChecks(c *cluster.Cluster) own.Spec { return own.Spec{Checks: c.Checks} }
