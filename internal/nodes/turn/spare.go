package turn

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/probe"
)

// unjoined follows the name of a node with another machine that is no part of the cluster yet. Unlike a node that was only declared, the
// cluster has had it, and lacks it.
const unjoined = " was replaced and has not joined again; if it waits for its configuration, run up again"

// boot returns the id of a node's boot; "" if its Talos API does not answer.
func (e *Engine) boot(ctx context.Context, node Node) string {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	machine, err := e.Cluster.Machine(ctx, node)
	if err != nil {
		return ""
	}
	return machine.Boot
}

// spareControlPlane returns why another control plane must not go away now; "" if etcd and the API servers carry on without it. A control
// plane whose own etcd does not run contributes nothing, and may be changed, to repair it. The only one cannot be spared at any time, so
// nothing is awaited for it. While its etcd goes on, the API servers of the others are enough.
func (e *Engine) spareControlPlane(ctx context.Context, c Change) (missing string, err error) {
	node := c.Node
	others := e.others(node)
	machines, errs := e.machines(ctx, append([]Node{node}, others...))
	if errs[0] == nil && !machines[0].Runs("etcd") {
		return "", nil
	}
	members, unlisted := e.members(ctx, append(others, node))
	if e.alone(node) && (unlisted != nil || len(members) == 1) {
		return "", nil
	}
	nodes, err := e.Cluster.Nodes(ctx)
	if err != nil {
		return "the Kubernetes API does not answer: " + err.Error(), nil
	}
	var reasons, healthy, absent []string
	for i, other := range others {
		at, exists := nodes[other.Name]
		switch joined := exists || unlisted != nil || isMember(members, other); {
		case !joined && other.Generation > 1:
			reasons = append(reasons, other.Name+unjoined)
			continue
		case !joined:
			absent = append(absent, other.Name) // it was declared, and has not joined yet
			continue
		}
		problem := cmp.Or(EtcdProblem(machines[i+1], errs[i+1]), machines[i+1].staticPodsProblem())
		if problem == "" && at.Ours && at.Unschedulable {
			problem = e.left(ctx, other)
		}
		if problem == "" {
			healthy = append(healthy, other.Name)
		} else {
			reasons = append(reasons, other.Name+": "+problem)
		}
	}
	if len(reasons) > 0 {
		return list(reasons), nil
	}
	if unlisted != nil {
		return "the members of etcd cannot be listed: " + unlisted.Error(), nil
	}
	if c.KeepsEtcd {
		return "", nil
	}
	if len(members) == 2 && len(absent) > 0 {
		// Another resource of the same run may configure that node, or it may wait for this very turn.
		return fmt.Sprintf("etcd has two members and needs both, and %s has not joined; if it waits for its configuration, take back what "+
			"changes the control planes for one run, so that it joins first", list(absent)), nil
	}
	return quorumWithout(node.Name, members, healthy, e.skippedMembers(members))
}

// skippedMembers returns the names of the members of etcd that are left out: they count, and they are away for as long as that is declared.
func (e *Engine) skippedMembers(members []talosapi.Member) []string {
	var names []string
	for _, node := range e.Skip {
		if isMember(members, Node{Name: node.Name}) {
			names = append(names, node.Name)
		}
	}
	return names
}

// alone reports whether a node is the only declared control plane.
func (e *Engine) alone(node Node) bool { return node.IsControlPlane() && len(e.others(node)) == 0 }

func isMember(members []talosapi.Member, node Node) bool {
	return slices.ContainsFunc(members, func(member talosapi.Member) bool { return member.Name == node.Name })
}

// left returns why a node that an earlier run has left cordoned still counts as out of service. Once it has been healthy for StableFor, it
// is uncordoned.
func (e *Engine) left(ctx context.Context, node Node) string {
	missing, err := e.missing(ctx, Change{Node: node}, "")
	if err != nil {
		missing = err.Error()
	}
	e.mu.Lock()
	since, known := e.back[node.Name]
	switch {
	case missing != "":
		delete(e.back, node.Name)
	case !known:
		if e.back == nil {
			e.back = map[string]time.Time{}
		}
		since = time.Now()
		e.back[node.Name] = since
	}
	e.mu.Unlock()
	switch {
	case missing != "":
		return "an earlier run has left it cordoned, and " + missing
	case time.Since(since) < StableFor:
		return "an earlier run has left it cordoned"
	}
	if e.inTurn(node) { // by now: several nodes look at once
		return ""
	}
	if err := e.uncordon(ctx, node); err != nil {
		return err.Error()
	}
	e.Say("%s: an earlier run has left it cordoned; it is healthy, and schedulable again", node.Name)
	return ""
}

// quorumWithout returns why etcd would have no quorum without a member; "" if it has one, or if that member is the only one. A problem that
// does not go away by waiting is an error.
func quorumWithout(name string, members []talosapi.Member, healthy, skipped []string) (missing string, err error) {
	voters, left := 0, 0
	for _, member := range members {
		if member.Learner {
			return fmt.Sprintf("%s is a member of etcd without a vote yet", member.Title()), nil
		}
		voters++
		if member.Name != name && slices.Contains(healthy, member.Name) {
			left++
		}
	}
	need := voters/2 + 1
	switch {
	case voters == 1, left >= need:
		return "", nil
	case voters == 2 && left == 1:
		return "", fmt.Errorf("etcd has two members and needs both; declare a third control plane first, or remove one")
	}
	short := fmt.Sprintf("without it, %d of etcd's %d members are healthy, and %d are needed", left, voters, need)
	if voters-1-len(skipped) < need {
		return "", fmt.Errorf("%s; lifecycle.skip leaves out %s: bring that node back, or replace it, first", short, strings.Join(skipped, ", "))
	}
	return short, nil
}

// sick returns which other nodes answer and are not well; "" if none. One that does not answer has lost its machine, or its network: no
// configuration that is changed elsewhere concerns it.
func (e *Engine) sick(ctx context.Context, node Node) string {
	others := slices.DeleteFunc(slices.Clone(e.Nodes), func(other Node) bool { return other.Name == node.Name || e.inTurn(other) })
	machines, errs := e.machines(ctx, others)
	var reasons []string
	for i, other := range others {
		if errs[i] != nil {
			continue
		}
		if problem := machines[i].Problem(); problem != "" {
			reasons = append(reasons, other.Name+": "+problem)
		}
	}
	return list(reasons)
}

// spareWorker returns why too many workers are out of service already; "" if one more may be.
func (e *Engine) spareWorker(ctx context.Context, c Change) string {
	node := c.Node
	nodes, err := e.Cluster.Nodes(ctx)
	if err != nil {
		return "the Kubernetes API does not answer: " + err.Error()
	}
	out := e.leaving(node)
	for _, other := range e.others(node) {
		switch at, exists := nodes[other.Name]; {
		case e.inTurn(other):
			out = append(out, other.Name+" is in its turn")
		case !exists && other.Generation > 1 && c.Leaves: // before any machine gets its configuration
			out = append(out, other.Name+" was replaced and has not joined again; "+joinsBefore(node))
		case !exists && other.Generation > 1:
			out = append(out, other.Name+unjoined)
		case !exists: // it has not joined yet
		case at.Unschedulable && at.Ours:
			if problem := e.left(ctx, other); problem != "" {
				out = append(out, other.Name+": "+problem)
			}
		case at.Unschedulable:
			out = append(out, other.Name+" is cordoned by hand")
		case !at.Ready:
			out = append(out, other.Name+" is not Ready")
		case at.NoAgent:
			out = append(out, other.Name+": "+at.problem())
		}
	}
	if len(out) >= e.atOnce() {
		return fmt.Sprintf("%s (maxUnavailable is %s)", list(out), e.MaxUnavailable)
	}
	return ""
}

// machines asks the Talos APIs of nodes in parallel. One that does not answer leaves time for other questions of the same look.
func (e *Engine) machines(ctx context.Context, nodes []Node) ([]Machine, []error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	machines, errs := make([]Machine, len(nodes)), make([]error, len(nodes))
	probe.Each(nodes, func(i int, node Node) { machines[i], errs[i] = e.Cluster.Machine(ctx, node) })
	return machines, errs
}

// members asks control planes for etcd's members.
func (e *Engine) members(ctx context.Context, controlPlanes []Node) ([]talosapi.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return First(controlPlanes, func(node Node) ([]talosapi.Member, error) { return e.Cluster.Members(ctx, node) })
}

// stageRunning is the stage of a machine that runs, in Talos's words.
const stageRunning = "running"

// EtcdProblem returns why a control plane does not contribute to etcd's quorum now; "" if it does.
func EtcdProblem(machine Machine, err error) string {
	switch etcd := machine.Services["etcd"]; {
	case err != nil:
		return "its Talos API does not answer: " + err.Error()
	case machine.Stage != stageRunning:
		return machine.StageProblem()
	case etcd.State != talosapi.Running:
		return "its etcd is " + cmp.Or(etcd.State, "not there")
	case !etcd.Healthy:
		return "its etcd is not healthy"
	}
	return ""
}
