package services

import (
	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/workload"
)

// sealingKeyLate tells whether the fault sealed-key-late hides the sealing keys from a controller that starts.
func sealingKeyLate(c workload.Container) bool {
	return c.Cluster.Faults.IsActive(fault.SealedKeyLate, c.Cluster.Name)
}
