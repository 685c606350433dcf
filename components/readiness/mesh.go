package readiness

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/internal/health/mesh"
)

// typeMeshGate is part of the state: a rename needs Aliases.
const typeMeshGate = "slipway:readiness:MeshGate"

// MeshGateArgs are the arguments of a mesh gate. DependsOn are the leaves of what assigns the mesh address, and of Cilium.
type MeshGateArgs = LaterGateArgs[mesh.Spec]

// NewMeshGate registers the gate that opens only if every agent of the cluster sees every peer that exists. It changes nothing in the
// cluster. A peer that comes or goes is no change.
func NewMeshGate(ctx *pulumi.Context, name string, args *MeshGateArgs, opts ...pulumi.ResourceOption) (*LaterGate, error) {
	return newLaterGate(ctx, typeMeshGate, "mesh", name, args, opts...)
}
