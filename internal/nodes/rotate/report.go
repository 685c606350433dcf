package rotate

import (
	"fmt"

	"github.com/slipway-platform/slipway/internal/probe"
)

// Report is the result of a run after which all nodes have the declared certificate authority alone. It holds no secret.
type Report struct {
	probe.Head
	Of         Subject  `json:"of"`                  // whose authority
	Generation int      `json:"generation"`          // that all nodes have
	Changed    []string `json:"changed,omitempty"`   // nodes whose configuration the run has changed, in the order of the first change
	Silent     []string `json:"silent,omitempty"`    // nodes that did not answer: they have not joined, or are dead and leave
	Snapshot   string   `json:"snapshot,omitempty"`  // file with the state of etcd before
	Restarted  []string `json:"restarted,omitempty"` // workloads whose pods had to read the new CA, in the order of the restarts
}

// Sentence returns the result in one sentence.
func (r Report) Sentence() string {
	if len(r.Changed) == 0 && len(r.Restarted) == 0 {
		return fmt.Sprintf("all nodes had generation %d of %s's CA already", r.Generation, r.Of)
	}
	return fmt.Sprintf("all nodes have generation %d of %s's CA after %s, and accept no former one", r.Generation, r.Of, r.After())
}

// Text implements probe.Report.
func (r Report) Text() string {
	return fmt.Sprintf("%s's CA of %s: %s\n", r.Of, r.Cluster, r.Sentence()) +
		probe.Lines("  changed  ", r.Changed) + probe.Lines("  restarted  ", r.Restarted) + probe.Lines("  silent   ", r.Silent) +
		probe.Line("  snapshot ", r.Snapshot)
}
