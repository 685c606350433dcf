// Package report compares what two checkouts declare of their stacks, and writes the changes: Markdown for the comment of a pull
// request, JSON, and annotations of lines. It reads no file, runs nothing, and knows no secret.
package report

import "slices"

// Hidden stands for a value that must not be displayed.
const Hidden = "[secret]"

// Later stands for a value that is known only after a run.
const Later = "[known after up]"

// Side is one of the two checkouts that are compared.
type Side struct {
	Name   string  // what the checkout is, such as a commit
	Stacks []Stack // sorted by name, each once
}

// Stack is what a checkout declares of one stack.
type Stack struct {
	Name     string
	File     string    // path of the stack file in the checkout
	Problems []Problem // of the stack file; with any, only the fields up to Secrets are set

	Salt    string            // checksum of what the secrets are encrypted with; "" without
	Secrets map[string]string // checksum of the ciphertext of each secret in the file, by its key

	Keys     map[string]string // every value of the loaded configuration by its path, with defaults; secrets are hidden
	Machines []Machine         // control planes first
	CRDs     map[string]string // release and source of each set, by its name
	Settings map[string]string // cluster settings of the GitOps tree
	Charts   []Chart           // Helm releases of the bootstrap, in the order of installation
	Services []string          // names of those that are core services
	Owners   map[string]string // who upgrades a Helm release after that, pulumi or flux, by its name
	Tree     Tree
	Program  Program

	Existing Program // outcome of the program on a copy of the stack's state; it did not run without one
	StateOf  string  // time of that state
}

// Problem is a problem of a file, or of the run of a program.
type Problem struct {
	File string `json:"file,omitempty"` // "" if it is about no file
	Line int    `json:"line,omitempty"` // from 1; 0 if it is about no line
	Text string `json:"text"`
}

// Machine is a node.
type Machine struct {
	Name          string
	ControlPlane  bool
	VMID          int
	Host          string // Proxmox node
	DataDisks     int    // number of disks beside the system disk
	Parts         []Part // what its VM is made of
	Configuration string // lines PATH = VALUE, with hidden secrets
}

// Part is one property of a VM.
type Part struct {
	Input string // its input of the VM's resource, such as memory
	Name  string // for people
	Value string
}

// Chart is a Helm release.
type Chart struct {
	Name, Namespace, Chart, Version, Repository string

	Values map[string]any // with hidden secrets

	Manifests  map[string]string // objects that the chart renders to: lines PATH = VALUE by title; nil if the chart cannot be had
	Unrendered string            // why Manifests is nil
}

// Tree is what Flux applies.
type Tree struct {
	Objects  map[string]string // lines PATH = VALUE by title
	Problems []Problem         // with any, Objects may be incomplete
}

// Program is the outcome of `pulumi preview` on an empty backend.
type Program struct {
	Ran       bool
	Unrun     string     // why it did not run
	Resources []Resource // in the order of registration
	Problems  []Problem  // errors
	Warnings  []string
	Seconds   float64

	Operations []Operation // on a state: what happens to its resources
}

// Resource is one that the program registers.
type Resource struct {
	Type    string // token, such as proxmoxve:VM/virtualMachine:VirtualMachine
	Name    string
	Root    string // name of its component at the top, which may be the resource itself
	Protect bool
	Inputs  map[string]any // secrets are hidden, and what is known only after a run has a stand-in
}

// Find returns the stack of that name, or nil.
func (s Side) Find(name string) *Stack {
	return find(s.Stacks, func(stack Stack) bool { return stack.Name == name })
}

// find returns the first item for which is reports true, or nil.
func find[T any](items []T, is func(T) bool) *T {
	i := slices.IndexFunc(items, is)
	if i < 0 {
		return nil
	}
	return &items[i]
}

// usable reports whether the stack could be loaded.
func (s *Stack) usable() bool { return s != nil && len(s.Problems) == 0 }
