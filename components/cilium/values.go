package cilium

import "github.com/slipway-platform/slipway/cluster"

// Values are one cluster's choices that determine the chart's values. They contain no certificates, which are known later.
type Values struct {
	*cluster.Cluster

	Mesh bool // run the API server that peers of a cluster mesh read from, at the pool's mesh address
}
