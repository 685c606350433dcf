package cluster

// Readiness declares how long a cluster may take to become healthy.
type Readiness struct {
	// Longest wait of a gate for all its checks together, and of a core service for its pods. Nothing that depends on them is
	// created before they succeed.
	Timeout Duration `json:"timeout" range:"1s-" default:"10m" example:"15m"`
}
