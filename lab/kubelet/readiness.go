package kubelet

import (
	"time"
)

// Messages of a kubelet about a node that is not ready.
const (
	// cniMissing: there is no network plugin.
	cniMissing = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"
	// runtimeStuck: the container runtime does not answer in time, as happens now and then on an overloaded node.
	runtimeStuck = "PLEG is not healthy: pleg was last seen active 3m7.512s ago; threshold is 3m0s"
)

// readiness is the state of a node as the kubelet reports it.
type readiness struct {
	ready   bool
	message string        // why it is not ready
	served  bool          // a ready agent provides the network of new pods
	in      time.Duration // time until it changes by itself; 0: it does not
}

// readiness computes the node's state. Only keepStatus calls it.
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
	if k.shutting.Load() {
		r.ready, r.message = false, shuttingDown
	}
	if left > 0 && (r.in == 0 || left < r.in) {
		r.in = left
	}
	return r
}
