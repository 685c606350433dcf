package cilium

import "github.com/slipway-platform/slipway/cluster"

// Values are the choices of one cluster, to be turned into values of the chart. They hold no certificates: those are known
// later.
type Values struct {
	*cluster.Cluster

	Mesh bool // run the API server that peers of a cluster mesh read from, at the pool's mesh address
}

// relay tells whether Hubble's cluster-wide API runs.
func (v Values) relay() bool { return v.Cilium.Hubble.Relay != nil && *v.Cilium.Hubble.Relay }
