package turn

import (
	"errors"

	"github.com/slipway-platform/slipway/cluster"
)

// Declared is the part of a spec that says in which cluster nodes take turns, and by which limits and checks.
type Declared struct {
	Target
	cluster.TurnLimits // all required
	cluster.TurnChecks // optional
}

// DeclaredOf returns what a cluster declares for turns of its machines, or of some of them. It has no talosconfig. Only machines that were
// replaced have their generation: nothing runs again for a cluster without any.
func DeclaredOf(c *cluster.Cluster, machines []cluster.Machine) Declared {
	declared := Declared{Target: TargetOf(c, machines), TurnLimits: c.Lifecycle.TurnLimits, TurnChecks: c.TurnChecks()}
	for i, machine := range machines {
		if machine.Generation > 1 {
			declared.Nodes[i].Generation = machine.Generation
		}
	}
	return declared
}

// Validate returns every problem. Its errors hold nothing of the talosconfig.
func (d Declared) Validate() error {
	return errors.Join(d.CheckTarget(), d.CheckTalosconfig(), checkLimits(d.TurnLimits), cluster.ValidateChecks(d.Checks))
}
