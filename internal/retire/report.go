package retire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/internal/turn"
)

// Record is what a run leaves for the next one, as JSON on the last line of its standard output. It holds no secret.
type Record struct {
	Nodes map[string]Machine `json:"nodes"` // that were declared, by name
}

// Machine is a node of a Record.
type Machine struct {
	Role    cluster.Role `json:"role"`
	Address string       `json:"address"` // of its Talos API
}

// NewRecord returns the record of declared nodes.
func NewRecord(declared []turn.Node) Record {
	record := Record{Nodes: map[string]Machine{}}
	for _, node := range declared {
		record.Nodes[node.Name] = Machine{Role: node.Role, Address: node.Address}
	}
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
		nodes = append(nodes, turn.Node{Name: name, Role: machine.Role, Address: machine.Address})
	}
	return sorted(nodes)
}

// Report is the result of a run after which only declared nodes are in the cluster. It holds no secret.
type Report struct {
	Kind    string   `json:"kind"` // retire
	Cluster string   `json:"cluster"`
	Removed []string `json:"removed,omitempty"` // in order
	Record
	Took probe.Duration `json:"took"`
}

// Sentence returns the result in one sentence.
func (r Report) Sentence() string {
	if len(r.Removed) == 0 {
		return "no node has left the stack file"
	}
	return fmt.Sprintf("removed %s after %s", strings.Join(r.Removed, ", "), probe.Took(time.Duration(r.Took)))
}

// Write writes the report as text, and then as JSON on one line.
func (r Report) Write(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "nodes of %s: %s\n", r.Cluster, r.Sentence())
	for _, name := range r.Removed {
		fmt.Fprintf(&text, "  removed  %s\n", name)
	}
	return probe.WriteReport(w, text.String(), r)
}
