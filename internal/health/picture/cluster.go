package picture

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/health/mesh"
)

// Cluster is a declared cluster, and what its gates have found.
type Cluster struct {
	Gate  *gate.Spec // nil: its nodes are not known
	Mesh  *mesh.Spec // nil: it is in no mesh, or that is not known
	Found []health.Report
}

// report returns the newest report of a subcommand of slipway-probe; nil if there is none.
func (c Cluster) report(kind string) *health.Report {
	for i := range c.Found {
		if c.Found[i].Kind == kind {
			return &c.Found[i]
		}
	}
	return nil
}

// state is what is known of a thing in the picture.
type state string

// The states.
const (
	good    state = "good"
	bad     state = "bad"
	unknown state = "unknown"
	none    state = "none" // it does not apply, or does not exist
)

// Mark is the state as a character, because colour alone says nothing to many.
func (s state) Mark() string {
	return map[state]string{good: "✓", bad: "✗", unknown: "?", none: "–"}[s]
}

// thing is a box in the picture.
type thing struct {
	Name, Role string
	Address    netip.Addr
	State      state
	Says       string // the state in words
	Etcd       string // of a control plane: whether it is a member of etcd, in words
	X, Y       int
}

// Measures of the picture. It is as wide as a phone, in pixels.
const (
	pictureWidth = 360
	boxWidth     = 168
	boxHeight    = 66
	boxGap       = 8
	groupTitle   = 24
	boxesInRow   = 2
)

// boxGroup is a group of boxes with a title.
type boxGroup struct {
	Title     string
	Y, Height int
	Boxes     []thing
}

// nodesPicture is the picture of the cluster's nodes.
type nodesPicture struct {
	Groups []boxGroup
	Height int
	Says   string // what the picture shows, in a sentence
}

// Width is that of the picture.
func (nodesPicture) Width() int { return pictureWidth }

func (c Cluster) nodes() *nodesPicture {
	if c.Gate == nil || len(c.Gate.Nodes) == 0 {
		return nil
	}
	var planes, workers, later []thing
	members := 0
	for _, machine := range c.Gate.Nodes {
		node := c.node(machine)
		if machine.Role != cluster.ControlPlane {
			workers = append(workers, node)
			continue
		}
		var member bool
		if node.Etcd, member = c.member(machine); member {
			members++
		}
		planes = append(planes, node)
	}
	for _, machine := range c.Gate.Others {
		later = append(later, thing{
			Name: machine.Name, Role: string(machine.Role), Address: machine.Address, State: unknown, Says: "joins later, was not judged",
		})
	}
	p := &nodesPicture{}
	p.add(fmt.Sprintf("Control planes · etcd members: %d of %d", members, len(planes)), planes)
	p.add("Workers", workers)
	p.add("Workers that join later", later)
	states := map[state]int{}
	for _, node := range slices.Concat(planes, workers) {
		states[node.State]++
	}
	p.Says = fmt.Sprintf("%d control planes and %d workers: %d healthy, %d with a failed check, %d not judged. Of the control planes, %d are "+
		"known as members of etcd; it needs %d.", len(planes), len(workers)+len(later), states[good], states[bad], states[unknown]+len(later),
		members, len(planes)/2+1)
	return p
}

// add adds a group of boxes below the others.
func (p *nodesPicture) add(title string, boxes []thing) {
	if len(boxes) == 0 {
		return
	}
	top := p.Height + groupTitle
	for i := range boxes {
		boxes[i].X = boxGap + i%boxesInRow*(boxWidth+boxGap)
		boxes[i].Y = top + i/boxesInRow*(boxHeight+boxGap)
	}
	rows := (len(boxes) + boxesInRow - 1) / boxesInRow
	height := groupTitle + rows*(boxHeight+boxGap)
	p.Groups = append(p.Groups, boxGroup{Title: title, Y: p.Height, Height: height, Boxes: boxes})
	p.Height += height + boxGap
}

// node is a node as the gate has found it.
func (c Cluster) node(machine gate.Machine) thing {
	node := thing{Name: machine.Name, Role: string(machine.Role), Address: machine.Address, State: unknown, Says: "no gate has judged it"}
	report := c.report("gate")
	if report == nil {
		return node
	}
	var failed []health.Result
	passed, blocked := 0, 0
	for _, result := range judged(report) {
		switch {
		case result.Subject != machine.Name:
		case result.Verdict == health.Failed:
			failed = append(failed, result)
		case result.Blocked:
			blocked++
		case result.Verdict == health.Passed:
			passed++
		}
	}
	switch {
	case len(failed) > 0:
		node.State, node.Says = bad, failed[0].Reason
		if len(failed) > 1 {
			node.Says = fmt.Sprintf("%d checks fail: %s", len(failed), failed[0].Reason)
		}
	case report.Outcome == health.Open && passed > 0:
		node.State, node.Says = good, fmt.Sprintf("%d checks passed", passed)
	case report.Outcome == health.Open:
		node.State, node.Says = good, "all checks passed"
	case blocked > 0:
		node.Says = fmt.Sprintf("%d checks wait for another", blocked)
	case passed > 0:
		node.State, node.Says = good, fmt.Sprintf("%d checks passed", passed)
	default:
		node.Says = "no failed check is about it"
	}
	return node
}

// member tells whether a control plane is a member of etcd, in words too.
func (c Cluster) member(machine gate.Machine) (string, bool) {
	report := c.report("gate")
	if report == nil {
		return "etcd not judged", false
	}
	for _, result := range judged(report) {
		if result.Check != gate.EtcdMembersName || result.Subject != machine.Name {
			continue
		}
		if result.Verdict == health.Passed {
			return "etcd member", true
		}
		return "no voting etcd member", false
	}
	if report.Outcome == health.Open {
		return "etcd member", true
	}
	return "etcd not judged", false
}

// judged returns the results of a report: all of them, or as many as it has.
func judged(report *health.Report) []health.Result {
	if len(report.Results) > 0 {
		return report.Results
	}
	return report.Problems
}

// meshPicture is the picture of the mesh: the cluster, and its peers below.
type meshPicture struct {
	Own    thing
	Peers  []thing
	Height int
	Says   string
}

// Width is that of the picture.
func (meshPicture) Width() int { return pictureWidth }

const meshTop = 64 // from the upper edge of the cluster's box to that of the first peer's

func (c Cluster) mesh() *meshPicture {
	if c.Mesh == nil {
		return nil
	}
	spec := c.Mesh
	p := &meshPicture{Own: thing{
		Name: spec.Name, Role: fmt.Sprintf("id %d", spec.ID), Address: spec.Address, X: (pictureWidth - boxWidth) / 2, Y: 4,
	}}
	var words []string
	for i, peer := range spec.Peers {
		box := c.peer(peer)
		box.X = boxGap + i%boxesInRow*(boxWidth+boxGap)
		box.Y = 4 + boxHeight + meshTop + i/boxesInRow*(boxHeight+meshTop)
		p.Peers = append(p.Peers, box)
		p.Height = box.Y + boxHeight + 4
		words = append(words, box.Name+" is "+box.Says)
	}
	p.Says = spec.Name + " and its peers: " + strings.Join(words, ", ") + "."
	return p
}

// peer is a peer as the mesh gate has found it.
func (c Cluster) peer(peer mesh.Peer) thing {
	box := thing{Name: peer.Name, Role: fmt.Sprintf("id %d", peer.ID), Address: peer.Address, State: unknown, Says: "not judged"}
	report := c.report("mesh")
	if report == nil {
		return box
	}
	absent := false
	for _, result := range judged(report) {
		if result.Subject != peer.Name && !strings.HasPrefix(result.Subject, peer.Name+" on ") {
			continue
		}
		if result.Verdict == health.Failed {
			box.State, box.Says = bad, "not connected"
			return box
		}
		absent = absent || result.Verdict == health.Skipped
	}
	switch {
	case absent:
		box.State, box.Says = none, "absent"
	case report.Outcome == health.Open:
		box.State, box.Says = good, "connected"
	}
	return box
}

// Line is the line between the cluster and a peer's box: from X1, Y1 to X2, Y2.
func (t thing) Line() struct{ X1, Y1, X2, Y2 int } {
	return struct{ X1, Y1, X2, Y2 int }{pictureWidth / 2, 4 + boxHeight, t.X + boxWidth/2, t.Y}
}

// Line2 is the second line in a box.
func (t thing) Line2() string { return t.Address.String() + " · " + t.Role }

// Short is a text that fits into a box.
func (thing) Short(text string, runes int) string {
	if utf8.RuneCountInString(text) <= runes {
		return text
	}
	return string([]rune(text)[:runes-1]) + "…"
}
