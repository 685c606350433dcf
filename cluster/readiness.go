package cluster

// Readiness is how long a cluster may take to become healthy.
type Readiness struct {
	// Longest wait of a gate for all its checks together, and for the pods of a core service to run. Nothing after it is
	// created until it has passed.
	Timeout Duration `json:"timeout" range:"1s-24h" default:"10m" example:"15m"`
}
