package readiness

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/internal/health/storage"
)

// typeStorageGate is part of the state: a rename needs Aliases.
const typeStorageGate = "slipway:readiness:StorageGate"

// StorageGateArgs are the arguments of a storage gate. DependsOn are the leaves of what installs the storage.
type StorageGateArgs = LaterGateArgs[storage.Spec]

// NewStorageGate registers the gate that opens only if pods get volumes of every declared class. It removes the volumes that it creates.
func NewStorageGate(ctx *pulumi.Context, name string, args *StorageGateArgs, opts ...pulumi.ResourceOption) (*LaterGate, error) {
	return newLaterGate(ctx, typeStorageGate, "storage", name, args, opts...)
}
