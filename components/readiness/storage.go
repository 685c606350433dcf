package readiness

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health/storage"
)

// typeStorageGate is part of the state: a rename needs Aliases.
const typeStorageGate = "slipway:readiness:StorageGate"

// StorageGateArgs are the arguments of a storage gate. DependsOn are the leaves of what installs the storage.
type StorageGateArgs = LaterGateArgs[storage.Spec]

// NewStorageGate registers the gate that opens only if pods get volumes of every declared class. It removes its volumes.
func NewStorageGate(ctx *pulumi.Context, name string, args *StorageGateArgs, opts ...pulumi.ResourceOption) (*LaterGate, error) {
	return newLaterGate(ctx, typeStorageGate, "storage", name, args, opts...)
}

// DeclaredStorage returns what a storage gate expects of a declared cluster: its classes and drivers, on every node that takes ordinary
// pods.
func DeclaredStorage(c *cluster.Cluster) storage.Spec {
	spec := storage.Spec{Classes: c.Storage.Classes, Drivers: c.Storage.Drivers}
	for _, machine := range c.Serving(c.PodMachines()) {
		spec.Nodes = append(spec.Nodes, machine.Name)
	}
	if namespace, name := c.Storage.Connection(); name != "" {
		spec.Connection = &storage.Connection{Provider: c.Storage.ProviderCluster, Namespace: namespace, ExternalSecret: name}
	}
	return spec
}
