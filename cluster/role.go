// Package cluster says what a cluster is: its nodes and networks, the choices for Talos, Cilium and Flux, their versions
// and what goes with what, limits and defaults. It imports no Pulumi.
package cluster

// Role is a machine's type, as Talos spells it.
type Role string

// The roles.
const (
	ControlPlane Role = "controlplane"
	Worker       Role = "worker"
)
