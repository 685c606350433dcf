// Package faults is the fault matrix: what can break while a cluster comes up, and what `pulumi up` must make of it. The
// end-to-end tests run it against the lab (`make matrix`), and docs/faults.md shows it.
package faults

// Moment is how far an up has got when a fault bites.
type Moment string

// The moments, in the order in which an up reaches them.
const (
	BeforeApply    Moment = "before apply"    // images, VMs, boot
	AfterApply     Moment = "after apply"     // installation, reboot, bootstrap
	AfterBootstrap Moment = "after bootstrap" // etcd, the Kubernetes API, registration: the machines gate
	AfterCilium    Moment = "after Cilium"    // the network core comes up
	AtTheGate      Moment = "at the gate"     // everything is there, and not well
	AfterTheGate   Moment = "after the gate"  // core services come up, and Flux
)

// Moments are all of them, in order.
var Moments = []Moment{BeforeApply, AfterApply, AfterBootstrap, AfterCilium, AtTheGate, AfterTheGate}

// Verdict is what an up does about a fault.
type Verdict string

// The verdicts.
const (
	Stops  Verdict = "stops"   // up fails, and says why
	Waits  Verdict = "waits"   // up is still waiting when the fault is lifted, and completes what it waited for
	GoesOn Verdict = "goes on" // up does not notice
)

// Case is one row of the matrix. The stack is infra, as committed: three control planes, two workers.
type Case struct {
	Name   string // what is broken, for a person
	Moment Moment
	Kind   string // of the lab's fault
	Target string // of the lab's fault; "" where the kind takes none
	Detail string // of the lab's fault; optional
	Up     Verdict
	Says   string // regular expression that up's output has to match; "" where it does not notice
	Before string // the component of which nothing exists afterwards, nor of any that comes after it; "" if up goes on
	Repair string // what a person does beside lifting the cause, as a command in the lab; optional
}

// Chain is the components by type token, in the order of the chain.
var Chain = []string{
	"slipway:talos:TalosCluster",
	"slipway:readiness:ReadinessGate",
	"slipway:core:CRDs",
	"slipway:cilium:CiliumCore",
	"slipway:core:CoreServices",
	"slipway:secrets:SecretsFoundation",
	"slipway:gitops:GitOpsHandover",
}
