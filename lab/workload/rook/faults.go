package rook

import (
	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/workload"
)

// cephGone tells whether the fault ceph-gone keeps everybody from the cluster's Ceph.
func cephGone(c workload.Container) bool {
	return c.Cluster.Faults.IsActive(fault.CephGone, c.Cluster.Name)
}

// driverMissing tells whether the fault csi-driver-missing keeps the CSI driver of the container's node from being registered.
func driverMissing(c workload.Container) bool {
	return c.Cluster.Faults.IsActive(fault.CSIDriverMissing, c.Node)
}
