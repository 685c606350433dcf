package cluster

// MaxClusterID is the largest cluster id of Cilium. The tag of Identity.ID repeats it.
const MaxClusterID = 255

// Identity identifies the cluster in Talos, in Kubernetes clients and in Cilium's mesh.
type Identity struct {
	// Name of the cluster in Talos, in `kubectl` and in Cilium's mesh.
	Name string `json:"name" config:"required" form:"cluster-name" example:"infra"`
	// Cilium's cluster id, unique in a mesh.
	ID int `json:"id" range:"1-255" default:"1" example:"2"`
}
