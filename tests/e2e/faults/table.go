// Package faults defines the fault matrix: the faults that can occur while a cluster is created, and what `pulumi up` must do about
// each. The end-to-end tests run it in the lab (`make matrix`), and docs/faults.md shows it.
package faults

// Moment is the progress of a run when a fault takes effect.
type Moment string

// The moments, in the order in which a run reaches them.
const (
	BeforeApply    Moment = "before apply"    // images, VMs, boot
	AfterApply     Moment = "after apply"     // installation, reboot, bootstrap
	AfterBootstrap Moment = "after bootstrap" // etcd, the Kubernetes API, registration: the machines gate
	AfterCilium    Moment = "after Cilium"    // the network core comes up
	AtTheGate      Moment = "at the gate"     // everything exists, but is not healthy
	AfterTheGate   Moment = "after the gate"  // core services come up, and Flux
)

// Moments lists all moments in order.
var Moments = []Moment{BeforeApply, AfterApply, AfterBootstrap, AfterCilium, AtTheGate, AfterTheGate}

// Verdict is what a run does when a fault occurs.
type Verdict string

// The verdicts.
const (
	Stops  Verdict = "stops"   // up fails and prints the reason
	Waits  Verdict = "waits"   // up still waits when the fault is switched off, and then continues
	GoesOn Verdict = "goes on" // the fault does not affect up
)

// Case is one row of the matrix. The stack is infra, as committed: three control planes, two workers.
type Case struct {
	Name   string // description of the fault
	Moment Moment
	Kind   string // kind of the lab's fault
	Target string // target of the lab's fault; "" if the kind takes none
	Detail string // detail of the lab's fault; optional
	Up     Verdict
	Says   string // regular expression that up's output must match; "" unless up stops
	Before string // the first component in Chain of which nothing exists afterwards; "" if all exist except what Flux applies
	Repair string // command in the lab that a person must run in addition to switching the fault off; optional
}

// Chain lists the components' type tokens in the order of creation.
var Chain = []string{
	"slipway:talos:TalosCluster",
	"slipway:readiness:ReadinessGate",
	"slipway:core:CRDs",
	"slipway:cilium:CiliumCore",
	"slipway:core:CoreServices",
	"slipway:secrets:SecretsFoundation",
	"slipway:gitops:GitOpsHandover",
}
