package retire

import (
	"cmp"
	"errors"
	"time"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/probe"
)

// PreviousOutput is the environment variable in which Pulumi gives a command the standard output of its last successful run: the record of
// the nodes that were declared then. Nodes that it does not name are never removed.
const PreviousOutput = "PULUMI_COMMAND_STDOUT"

// Node is a declared node.
type Node struct {
	turn.Node
	Generation int `json:"generation"` // of its machine; a greater one than before replaces the machine; at least 1
}

// Spec says which nodes stay in a cluster.
type Spec struct {
	Cluster     string `json:"cluster"`     // name; required
	Talosconfig string `json:"talosconfig"` // client configuration, YAML; secret; required
	Nodes       []Node `json:"nodes"`       // all declared nodes, control planes among them; required

	// Recovers means that the cluster is made anew, from a snapshot or empty, if no control plane runs etcd. Then nothing has to be
	// removed from it.
	Recovers bool `json:"recovers,omitempty"`

	MaxUnavailable int            `json:"maxUnavailable,omitempty"` // workers that may be out of service at once; 0 means 1
	DrainTimeout   probe.Duration `json:"drainTimeout,omitempty"`   // longest drain of a node; 0 means turn.DefaultDrainTimeout
	ReturnTimeout  probe.Duration `json:"returnTimeout,omitempty"`  // longest return of a cordoned node; 0 means turn.DefaultBackTimeout
	Timeout        probe.Duration `json:"timeout,omitempty"`        // longest wait for the whole run; 0 means Longest
}

// atOnce is how many removals a run has time for. The next run goes on with more.
const atOnce = 10

// Longest returns how long a run may take: the return of a node that an earlier run has left cordoned, and the removals.
func Longest(drain, back time.Duration) time.Duration {
	each := turn.DefaultSilentTimeout + 3*turn.DefaultSpareTimeout + cmp.Or(drain, turn.DefaultDrainTimeout) + turn.DefaultOffTimeout
	return cmp.Or(back, turn.DefaultBackTimeout) + atOnce*each
}

// SetDefaults sets what was left out.
func (s *Spec) SetDefaults() {
	s.MaxUnavailable = max(s.MaxUnavailable, 1)
	s.DrainTimeout = probe.Duration(s.DrainTimeout.Or(turn.DefaultDrainTimeout))
	s.ReturnTimeout = probe.Duration(s.ReturnTimeout.Or(turn.DefaultBackTimeout))
	s.Timeout = probe.Duration(s.Timeout.Or(Longest(time.Duration(s.DrainTimeout), time.Duration(s.ReturnTimeout))))
}

// Validate returns every problem of the spec. Its errors hold nothing of the talosconfig.
func (s *Spec) Validate() error {
	return errors.Join(
		probe.Required("cluster", s.Cluster, "give the cluster's name"),
		probe.Required("talosconfig", s.Talosconfig, "give the content of a talosconfig"),
		probe.NotNegative("drainTimeout", s.DrainTimeout), probe.NotNegative("returnTimeout", s.ReturnTimeout),
		probe.NotNegative("timeout", s.Timeout),
		turn.CheckNodes(plain(s.Nodes)),
	)
}

// plain returns the nodes without their generations.
func plain(nodes []Node) []turn.Node {
	var list []turn.Node
	for _, node := range nodes {
		list = append(list, node.Node)
	}
	return list
}
