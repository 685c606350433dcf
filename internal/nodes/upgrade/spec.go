package upgrade

import (
	"cmp"
	"errors"
	"time"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/nodes/versions"
	"github.com/slipway-platform/slipway/internal/probe"
)

// Spec says what the nodes of a cluster are to run.
type Spec struct {
	Cluster     string      `json:"cluster"`     // name; required
	Talosconfig string      `json:"talosconfig"` // client configuration, YAML; secret; required
	Nodes       []turn.Node `json:"nodes"`       // all declared nodes, control planes among them; required

	versions.Releases        // all required but Cilium
	Installer         string `json:"installer"` // image that Talos of this version and schematic is installed from; required

	MaxUnavailable   int            `json:"maxUnavailable,omitempty"`   // workers that may be out of service at once; 0 means 1
	DrainTimeout     probe.Duration `json:"drainTimeout,omitempty"`     // longest drain of a node; 0 means turn.DefaultDrainTimeout
	ReturnTimeout    probe.Duration `json:"returnTimeout,omitempty"`    // longest return of a changed node; 0 means turn.DefaultBackTimeout
	AllowRemovedAPIs bool           `json:"allowRemovedAPIs,omitempty"` // upgrade although clients use APIs that the new version lacks
	Snapshots        Snapshots      `json:"snapshots"`
	Timeout          probe.Duration `json:"timeout,omitempty"` // longest wait for the whole run; 0 means Longest
}

// Snapshots says where the snapshot of etcd before an upgrade is kept.
type Snapshots struct {
	Folder     string   `json:"folder,omitempty"`     // below ${XDG_STATE_HOME:-~/.local/state}/slipway; "" means that none is taken
	Keep       int      `json:"keep,omitempty"`       // how many of a cluster are kept; 0 means all
	Recipients []string `json:"recipients,omitempty"` // age public keys that it is encrypted to; none: not encrypted
}

// Longest returns how long a run may take: the time for the images and the control planes, and for each node a turn of every kind.
func Longest(nodes int, drain, back time.Duration) time.Duration {
	each := cmp.Or(drain, turn.DefaultDrainTimeout) + turn.DefaultSpareTimeout + 2*cmp.Or(back, turn.DefaultBackTimeout)
	return time.Hour + time.Duration(nodes)*each
}

// SetDefaults sets what was left out.
func (s *Spec) SetDefaults() {
	s.MaxUnavailable = max(s.MaxUnavailable, 1)
	s.DrainTimeout = probe.Duration(s.DrainTimeout.Or(turn.DefaultDrainTimeout))
	s.ReturnTimeout = probe.Duration(s.ReturnTimeout.Or(turn.DefaultBackTimeout))
	s.Timeout = probe.Duration(s.Timeout.Or(Longest(len(s.Nodes), time.Duration(s.DrainTimeout), time.Duration(s.ReturnTimeout))))
}

// Validate returns every problem of the spec. Its errors hold nothing of the talosconfig.
func (s *Spec) Validate() error {
	return errors.Join(
		probe.Required("cluster", s.Cluster, "give the cluster's name"),
		probe.Required("talosconfig", s.Talosconfig, "give the content of a talosconfig"),
		probe.Required("talos", s.Talos, "give the version of Talos"),
		probe.Required("schematic", s.Schematic, "give the id of the schematic"),
		probe.Required("installer", s.Installer, "give the image that Talos is installed from"),
		probe.Required("kubernetes", s.Kubernetes, "give the version of Kubernetes"),
		probe.NotNegative("drainTimeout", s.DrainTimeout), probe.NotNegative("returnTimeout", s.ReturnTimeout),
		probe.NotNegative("timeout", s.Timeout),
		turn.CheckNodes(s.Nodes),
	)
}

// ControlPlanes returns the control planes in the order of the nodes.
func (s *Spec) ControlPlanes() []turn.Node { return turn.ControlPlanes(s.Nodes) }
