// Package steps lists the steps of the chain: package stacks registers them, and a preview draws them. It imports no Pulumi.
package steps

// Names of the components that a stack registers. They do not depend on the configuration: a change of it never renames a resource.
const (
	Talos    = "talos"
	Machines = "machines"
	CRDs     = "crds"
	Cilium   = "cilium"
	Gate     = "gate"
	Workers  = "workers"
	Core     = "core"
	Secrets  = "secrets"
	GitOps   = "gitops"
	Storage  = "storage"
	Mesh     = "mesh"
	Checks   = "checks"
)

// Step is a part of the chain.
type Step struct {
	Title      string
	Components []string // which the program registers in this step, in order; none for Flux's own steps
}

// Chain returns the steps in the order of the program and of a preview.
func Chain() []Step {
	return []Step{
		{"machines", []string{Talos, Machines}},
		{"CRDs", []string{CRDs}},
		{"Cilium", []string{Cilium}},
		{"gate", []string{Gate, Workers}},
		{"core services", []string{Core}},
		{"secrets", []string{Secrets}},
		{"handover", []string{GitOps}},
		{"storage gate", []string{Storage}},
		{"mesh gate", []string{Mesh}},
		{"checks gate", []string{Checks}},
		{"Flux", nil},
	}
}
