// Package cluster is the model of a declared cluster: its nodes and networks, the settings of Talos, Cilium and Flux, their
// versions and which of them are compatible, the limits and the defaults. It imports no Pulumi.
package cluster

// Role is a machine's type, in Talos's spelling.
type Role string

// The roles.
const (
	ControlPlane Role = "controlplane"
	Worker       Role = "worker"
)
