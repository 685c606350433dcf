package turn

import (
	"errors"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/probe"
)

// Target is the part of a spec that says which cluster a run changes.
type Target struct {
	Cluster     string `json:"cluster"`               // name; required
	Talosconfig string `json:"talosconfig,omitempty"` // client configuration of an administrator, YAML; secret; required
	Nodes       []Node `json:"nodes"`                 // all declared nodes, control planes among them; required

	Skip cluster.SkippedNodes `json:"skip,omitempty"` // nodes that are left as they are
}

// TargetOf returns a cluster with its machines, or with some of them. It has no talosconfig.
func TargetOf(c *cluster.Cluster, machines []cluster.Machine) Target {
	return Target{Cluster: c.Identity.Name, Nodes: NodesOf(machines), Skip: c.Lifecycle.Skip}
}

// CheckTarget returns every problem of the target but those of its talosconfig.
func (t Target) CheckTarget() error {
	return errors.Join(
		probe.Required("cluster", t.Cluster, "give the cluster's name"),
		CheckNodes(t.Nodes),
	)
}

// CheckTalosconfig returns an error if the target has no talosconfig. It holds nothing of it.
func (t Target) CheckTalosconfig() error {
	return probe.Required("talosconfig", t.Talosconfig, "give the content of the talosconfig of an administrator")
}

// SetDefaults sets nothing: what the specs with a target need must be given.
func (Target) SetDefaults() {}

// SaySkipped says which nodes are left as they are, and why.
func (t Target) SaySkipped(say func(format string, args ...any)) {
	for _, node := range t.Skip {
		say("%s: is left as it is, because lifecycle.skip names it: %s", node.Name, node.Reason)
	}
}

// ControlPlanes returns the control planes in the order of the nodes.
func (t Target) ControlPlanes() []Node { return ControlPlanes(t.Nodes) }
