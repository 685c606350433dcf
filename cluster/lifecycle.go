package cluster

import (
	"fmt"

	"github.com/slipway-platform/slipway/internal/syntax"
)

// Lifecycle declares how `up` changes the nodes of a running cluster: one after the other, each in its turn.
type Lifecycle struct {
	// Workers that may be out of service at once while machines are changed, those included that are not Ready or cordoned for other
	// reasons. Control planes always go one at a time.
	MaxUnavailable int `json:"maxUnavailable" range:"1-1000" default:"1" example:"2"`
	// Longest drain of a node. If a PodDisruptionBudget still blocks a pod then, `up` stops, names both, and the node is schedulable again.
	DrainTimeout Duration `json:"drainTimeout" range:"10s-" default:"10m" example:"30m"`
	// Upgrade Kubernetes to another minor release although clients use APIs that it does not have.
	AllowRemovedAPIs bool `json:"allowRemovedAPIs" example:"true"`
	// Allow an even number of control planes: on the way from one odd number to another, because each `up` removes one at most.
	AllowEvenControlPlanes bool `json:"allowEvenControlPlanes" example:"true"`
	// Snapshots of etcd, of which `up` takes one before each upgrade.
	Snapshots Snapshots `json:"snapshots"`
}

// Snapshots declares where the snapshots of etcd are kept that `up` takes.
type Snapshots struct {
	// Folder below `${XDG_STATE_HOME:-~/.local/state}/slipway` of whoever runs `up`. The snapshots hold all Secrets of the cluster.
	Folder string `json:"folder" form:"repository-path" default:"snapshots" example:"backups/etcd"`
	// How many snapshots of the cluster stay in the folder.
	Keep int `json:"keep" range:"1-1000" default:"5" example:"10"`
	// Age public keys that the snapshots are encrypted to. Without one, they are not encrypted.
	Recipients []string `json:"recipients" items:"1-" example:"[age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z]"`
}

func (c *checker) lifecycle() {
	for i, recipient := range c.Lifecycle.Snapshots.Recipients {
		if fault := syntax.AgeRecipient(recipient); fault != nil {
			c.Found(fmt.Sprintf("lifecycle.snapshots.recipients[%d]", i), fault.Remedy, "%s", fault.Problem)
		}
	}
}
