package cluster

// Identity is what tells the cluster from others: to Talos, to Kubernetes clients and in Cilium's mesh.
type Identity struct {
	// Name of the cluster, to Talos, to `kubectl` and in Cilium's mesh.
	Name string `json:"name" config:"required" form:"cluster-name" example:"infra"`
	// Cilium's cluster id. Every cluster of a mesh has another one.
	ID int `json:"id" config:"required" range:"1-255" example:"1"`
}
