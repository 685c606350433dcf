package kubelet

import (
	"time"
)

// What a kubelet says of a node that is not ready.
const (
	// cniMissing: there is no network plugin yet.
	cniMissing = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"
	// runtimeStuck: the container runtime does not answer in time, which comes and goes on an overloaded node.
	runtimeStuck = "PLEG is not healthy: pleg was last seen active 3m7.512s ago; threshold is 3m0s"
)

// readiness is what a kubelet reports of its node as a whole.
type readiness struct {
	ready   bool
	message string        // why not
	served  bool          // a ready agent gives pods their network now
	in      time.Duration // it changes by itself then; 0: not by itself
}

// readiness judges the node now. Only the loop that keeps the status calls it.
func (k *Kubelet) readiness() readiness {
	up, in := k.cni()
	r := readiness{ready: up, served: up && k.agentUp(), in: in}
	if !up {
		r.message = cniMissing
	}
	broken, left := k.flapping()
	if broken {
		r.ready, r.message = false, runtimeStuck
	}
	if left > 0 && (r.in == 0 || left < r.in) {
		r.in = left
	}
	return r
}
