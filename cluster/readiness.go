package cluster

import "time"

// Readiness declares how long a cluster may take to become healthy.
type Readiness struct {
	// Longest wait of a gate for all its checks together, and of a core service for its pods. Nothing that depends on them is
	// created before they succeed. Includes the pulls of images, for which the default suits a connection of 500 Mbit/s; raise it for a
	// slower one.
	Timeout *Duration `json:"timeout" range:"10s-" follows:"10m, and 6s for each node" example:"15m"`
}

// The default of Readiness.Timeout. A node pulls about 350 MB of images before its Cilium is ready.
const (
	readinessBase    = 10 * time.Minute
	readinessPerNode = 6 * time.Second
)

func (r *Readiness) derive(nodes int) {
	fill(&r.Timeout, &Duration{readinessBase + time.Duration(nodes)*readinessPerNode})
}
