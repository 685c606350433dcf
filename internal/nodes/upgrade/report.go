package upgrade

import (
	"fmt"
	"strings"

	"github.com/slipway-platform/slipway/internal/probe"
)

// Report is the result of a run after which all nodes run what is declared. It holds no secret.
type Report struct {
	probe.Head
	New        bool     `json:"new,omitempty"`        // no node had a configuration yet: there was nothing to upgrade
	Silent     []string `json:"silent,omitempty"`     // nodes that did not answer, and that were not needed
	Talos      []string `json:"talos,omitempty"`      // nodes whose Talos was upgraded, in order
	Kubernetes []string `json:"kubernetes,omitempty"` // what of Kubernetes was upgraded, "COMPONENT on NODE", in order
	Rebooted   []string `json:"rebooted,omitempty"`   // nodes that had booted before the declared time, in order
	Left       string   `json:"left,omitempty"`       // what does not run, and is left to the configurations with all that follows
	Snapshot   string   `json:"snapshot,omitempty"`   // file with the state of etcd before
	Versions   Versions `json:"versions"`             // that all nodes run, or get with their configurations
}

// Versions are the declared versions.
type Versions struct {
	Talos      string `json:"talos"`
	Kubernetes string `json:"kubernetes"`
}

// Sentence returns the result in one sentence.
func (r Report) Sentence() string {
	switch {
	case r.New:
		return "no control plane has a configuration yet: there is nothing to upgrade"
	case r.Left != "":
		return fmt.Sprintf("left %s, which does not run, and the nodes that follow to their machine configurations after %s", r.Left, r.After())
	case len(r.Talos) == 0 && len(r.Kubernetes) == 0 && len(r.Rebooted) > 0:
		return fmt.Sprintf("rebooted %d nodes after %s", len(r.Rebooted), r.After())
	case len(r.Talos) == 0 && len(r.Kubernetes) == 0 && len(r.Silent) > 0:
		return fmt.Sprintf("the nodes that answer run Talos %s and Kubernetes %s; no answer from %s",
			r.Versions.Talos, r.Versions.Kubernetes, strings.Join(r.Silent, ", "))
	case len(r.Talos) == 0 && len(r.Kubernetes) == 0:
		return fmt.Sprintf("all nodes run Talos %s and Kubernetes %s", r.Versions.Talos, r.Versions.Kubernetes)
	}
	var did []string
	if len(r.Talos) > 0 {
		did = append(did, fmt.Sprintf("Talos %s on %d nodes", r.Versions.Talos, len(r.Talos)))
	}
	if len(r.Kubernetes) > 0 {
		did = append(did, "Kubernetes "+r.Versions.Kubernetes)
	}
	return fmt.Sprintf("upgraded to %s after %s", strings.Join(did, " and "), r.After())
}

// Text implements probe.Report.
func (r Report) Text() string {
	return fmt.Sprintf("upgrade of %s: %s\n", r.Cluster, r.Sentence()) +
		probe.Lines("  upgraded  Talos on ", r.Talos) + probe.Lines("  upgraded  ", r.Kubernetes) + probe.Lines("  rebooted  ", r.Rebooted) +
		probe.Lines("  silent    ", r.Silent) + probe.Line("  snapshot  ", r.Snapshot)
}
