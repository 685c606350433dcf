package retire

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/probe"
)

// Record is what a run leaves for the next one, as JSON on the last line of its standard output. It holds no secret.
type Record struct {
	Identity Identity           `json:"identity,omitzero"` // zero in a record of a Slipway that did not know it
	Nodes    map[string]Machine `json:"nodes"`             // that were declared, by name
}

// Machine is a node of a Record, without its name. Its generation is 0 in a record of a Slipway that did not know any.
type Machine struct {
	turn.Node

	// Lost means that the node left while the cluster was lost: it is not declared any more, and a restored cluster may have its Node
	// object.
	Lost bool `json:"lost,omitempty"`
}

func newMachine(node turn.Node, lost bool) Machine {
	node.Name = ""
	return Machine{Node: node, Lost: lost}
}

// NewRecord returns the record of declared nodes.
func NewRecord(declared []turn.Node) Record {
	record := Record{Nodes: map[string]Machine{}}
	for _, node := range declared {
		record.Nodes[node.Name] = newMachine(node, false)
	}
	return record
}

// Record returns the record of what the spec declares.
func (s *Spec) Record() Record {
	record := NewRecord(s.Nodes)
	record.Identity = s.Identity
	return record
}

// String returns the record as JSON.
func (r Record) String() string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // it holds only texts
	}
	return string(text)
}

// ReadRecord reads the record in the standard output of the last run; "" is a record without nodes. A text without a record is an error,
// because nodes could be left behind.
func ReadRecord(stdout string) (Record, error) {
	var record Record
	if stdout == "" {
		return record, nil
	}
	if err := json.Unmarshal([]byte(probe.ReportLine(stdout)), &record); err != nil || record.Nodes == nil {
		return Record{}, errors.New("the output of the last run does not end with the record of the nodes; see pulumi stack export")
	}
	return record, nil
}

// nodes returns the nodes in the order in which they would be removed.
func (r Record) nodes() []turn.Node {
	var nodes []turn.Node
	for name, machine := range r.Nodes {
		machine.Name = name
		nodes = append(nodes, machine.Node)
	}
	slices.SortFunc(nodes, func(a, b turn.Node) int { return cmp.Or(turn.ByRole(a, b), strings.Compare(a.Name, b.Name)) })
	return nodes
}

// Report is the result of a run after which only declared nodes are in the cluster. It holds no secret.
type Report struct {
	probe.Head
	Removed []string `json:"removed,omitempty"` // in order
	Left    []string `json:"left,omitempty"`    // nodes that left while no control plane ran etcd: nothing was removed

	// Purge are the removed nodes with OSDs of Ceph, each with the command that removes them from Ceph.
	Purge []string `json:"purge,omitempty"`

	Snapshot string `json:"snapshot,omitempty"` // file with the state of etcd before a control plane was removed or added

	Record
}

// Lost adds nodes that left while the cluster was lost. A run in the restored cluster removes what it still has of them. Those that are
// declared join that cluster again.
func (r Report) Lost(nodes []turn.Node) Report {
	r.Nodes = maps.Clone(r.Nodes)
	for _, node := range nodes {
		r.Left = append(r.Left, node.Name)
		if _, declared := r.Nodes[node.Name]; !declared {
			node.Generation = 0
			r.Nodes[node.Name] = newMachine(node, true)
		}
	}
	return r
}

// Sentence returns the result in one sentence.
func (r Report) Sentence() string {
	switch {
	case len(r.Left) > 0:
		return fmt.Sprintf("no control plane runs etcd, and lifecycle.snapshots.recoverFrom is declared: %s left without a drain; "+
			"once that key is removed, up removes what the restored cluster still has of them", strings.Join(r.Left, ", "))
	case len(r.Removed) == 0:
		return "no node has left the stack file"
	}
	return fmt.Sprintf("removed %s after %s", strings.Join(r.Removed, ", "), r.After()) + r.purgeText()
}

// purgeText says how the OSDs of removed nodes are removed from Ceph, as the end of a sentence; "" without any.
func (r Report) purgeText() string {
	if len(r.Purge) == 0 {
		return ""
	}
	return "; remove the OSDs from Ceph: " + strings.Join(r.Purge, "; ")
}

// Text implements probe.Report.
func (r Report) Text() string {
	return fmt.Sprintf("nodes of %s: %s\n", r.Cluster, r.Sentence()) +
		probe.Lines("  removed  ", r.Removed) + probe.Lines("  purge    ", r.Purge) + probe.Lines("  left     ", r.Left) +
		probe.Line("  snapshot ", r.Snapshot)
}
