package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
)

// Durations of a removal that nobody declares.
const (
	SilentTimeout = 2 * time.Minute  // until a silent machine is lost; covers a short outage of the network, and most reboots
	OffTimeout    = 10 * time.Minute // longest end of a machine; covers the grace periods of the pods that a drain leaves

	handOnTimeout = 30 * time.Second
)

// Remover is a Cluster that nodes can be removed from. Each call may be repeated.
type Remover interface {
	Cluster
	VIPs
	ForfeitLeadership(ctx context.Context, node Node) error        // makes another member the leader of etcd, if the node's member is
	RemoveMember(ctx context.Context, asked Node, id uint64) error // asks a control plane to remove a member; ErrGone without it
	Shutdown(ctx context.Context, node Node) error                 // begins to end the machine; returns before it has ended
	DeleteNode(ctx context.Context, name string) error             // deletes the Node object; ErrGone without it
}

// Remove removes a node, so that its machine can be deleted or replaced: it waits until the cluster can spare the node, cordons and drains
// it, removes its member from etcd, shuts its machine down, and deletes its Node object. From then on its kubelet cannot register it again,
// unless somebody starts the machine.
//
// A machine that does not answer for SilentTimeout, and whose Node object is not Ready, is lost: its pods and its leadership are lost
// already. The Kubernetes API then deletes the pods, because their Node object is gone.
//
// A node that is not Ready is not drained: nobody would report that its pods have ended. Nodes of the engine that are not part of the
// cluster yet do not matter. If the drain fails, the node is schedulable again. After any later error it stays cordoned, and the next
// Remove goes on with it. Workers that leave count as out of service for each other: as many leave at once as may be. Remove no control
// plane while another node is in its turn.
func (e *Engine) Remove(ctx context.Context, from Remover, node Node) (err error) {
	r := &removal{Engine: e, from: from, node: node}
	defer func() { e.give(node, err != nil) }()
	if err := r.find(ctx); err != nil {
		return fmt.Errorf("%s is not removed: %w", node.Name, err)
	}
	if err := r.claim(ctx); err != nil {
		return err
	}
	if r.ready {
		if err := r.drain(ctx); err != nil {
			return errors.Join(fmt.Errorf("%s is not removed: %w", node.Name, err), e.undo(ctx, Change{Node: node}))
		}
	}
	for _, do := range []func(context.Context) error{r.leaveEtcd, r.shutDown, r.stillServes, r.deleteNode} {
		if err := do(ctx); err != nil {
			return fmt.Errorf("%s is removed in part: %w; fix the cause, and run up again", node.Name, err)
		}
	}
	e.Say("%s: is removed", node.Name)
	return nil
}

// removal is the removal of one node.
type removal struct {
	*Engine
	from Remover
	node Node

	answers bool // its Talos API
	ready   bool // its Node object is Ready
}

// lost reports whether the machine is dead.
func (r *removal) lost() bool { return !r.answers && !r.ready }

// find learns what there is of the node. It waits for a machine that does not answer, if the cluster still knows the node.
func (r *removal) find(ctx context.Context) error {
	silent, start := SilentTimeout, time.Now()
	limit := silent + SpareTimeout
	err := r.Until(ctx, limit, 0, r.node.Name, func(ctx context.Context) (string, error) {
		members, missing := r.ownMembers(ctx)
		if missing != "" {
			return missing, nil
		}
		nodes, err := r.Cluster.Nodes(ctx)
		if err != nil {
			return "the Kubernetes API does not answer: " + err.Error(), nil
		}
		at, exists := nodes[r.node.Name]
		r.ready = at.Ready
		_, err = r.Cluster.Machine(ctx, r.node)
		r.answers = err == nil
		if !r.answers && (exists || len(members) > 0) && time.Since(start) < silent {
			return "its Talos API does not answer: " + err.Error(), nil
		}
		return "", nil
	})
	switch {
	case err != nil || r.answers && r.ready:
	case r.answers:
		r.Say("%s: is not drained, because it is not Ready", r.node.Name)
	case r.ready:
		r.Say("%s: its Talos API does not answer, but its kubelet serves", r.node.Name)
	default:
		r.Say("%s: its machine is lost", r.node.Name)
	}
	return err
}

// ownMembers returns the node's members of etcd, as another control plane lists them: more than one if its machine was rebuilt and could
// not remove the former one.
func (r *removal) ownMembers(ctx context.Context) (own []talosapi.Member, missing string) {
	others := r.others(r.node)
	if !r.node.IsControlPlane() || len(others) == 0 {
		return nil, ""
	}
	members, err := r.members(ctx, others)
	if err != nil {
		return nil, "the members of etcd cannot be listed: " + err.Error()
	}
	return slices.DeleteFunc(slices.Clone(members), func(m talosapi.Member) bool { return !r.isOwn(m) }), ""
}

// isOwn reports whether a member of etcd is the node's. One that has never started has no name.
func (r *removal) isOwn(m talosapi.Member) bool {
	return m.Name == r.node.Name || m.Name == "" && slices.Contains(m.Addresses, r.node.Address)
}

// claim waits until the cluster can spare the node for good, and cordons it. A worker that is not Ready is missing already.
func (r *removal) claim(ctx context.Context) error {
	leaves := Change{Node: r.node, Leaves: true}
	if !r.ready {
		leaves.Awaits = Nothing
	}
	if !r.node.IsControlPlane() {
		if err := r.Engine.claim(ctx, leaves); err != nil {
			return err
		}
	} else if err := r.Until(ctx, SpareTimeout+r.stable(leaves), r.stable(leaves), r.node.Name+"'s removal",
		func(ctx context.Context) (string, error) { return r.spareForGood(ctx, leaves) }); err != nil {
		return r.refuse(leaves, err)
	}
	if r.lost() {
		return nil
	}
	if err := r.keepsStorage(ctx); err != nil {
		return fmt.Errorf("%s is not removed: %w", r.node.Name, err)
	}
	if err := r.cordon(ctx, r.node); err != nil {
		return fmt.Errorf("%s is not removed: %w", r.node.Name, err)
	}
	return nil
}

// keepsStorage refuses to remove the node with the only monitor of Ceph, or with the only copy of something: the data is on the node's
// disks, which go with it. Of a machine that is lost, Ceph's word is asked.
func (r *removal) keepsStorage(ctx context.Context) error {
	monitor, disk := daemonOfCeph("mon", "abcdefghijklmnopqrstuvwxyz"), daemonOfCeph("osd", "0123456789")
	own, err := r.Cluster.Pods(ctx, r.node.Name)
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(own, disk):
		if missing := r.unmet(ctx, r.Copies); missing != "" {
			return errors.New("it has a disk of Ceph, and " + missing)
		}
	}
	if !slices.ContainsFunc(own, monitor) {
		return nil
	}
	for _, other := range r.Nodes {
		pods, err := r.Cluster.Pods(ctx, other.Name)
		if err != nil || slices.ContainsFunc(pods, monitor) {
			return err
		}
	}
	return errors.New("it has the only monitor of Ceph; add another node, so that Rook runs more, or end the storage first")
}

// daemonOfCeph returns what selects the pods of a kind of daemon: Rook ends its name with one of the letters, and a pod's has a hash. Pods
// that prepare disks are none.
func daemonOfCeph(kind, letters string) func(Pod) bool {
	return func(p Pod) bool {
		id, is := strings.CutPrefix(p.Name, "rook-ceph-"+kind+"-")
		id, _, _ = strings.Cut(id, "-")
		return is && p.Namespace == cluster.RookNamespace && id != "" && strings.Trim(id, letters) == ""
	}
}

// spareForGood returns why a control plane cannot be removed now, by etcd and by the checks.
func (r *removal) spareForGood(ctx context.Context, leaves Change) (missing string, err error) {
	if missing, err = r.spare(ctx); missing == "" && err == nil {
		missing, err = r.forbids(ctx, leaves)
	}
	return missing, err
}

// spare returns why a control plane cannot be removed now; "" if etcd has a quorum with and without it. While its machine lives, all other
// control planes that stay must be healthy members, too: one that an interrupted run has removed to replace it is none until it has joined
// again, and a second one would not be missed by the quorum of those that are left.
func (r *removal) spare(ctx context.Context) (missing string, err error) {
	others := r.others(r.node)
	if len(others) == 0 {
		return "", errors.New("it is the only control plane; add another one first, and let it join")
	}
	members, err := r.members(ctx, others)
	if err != nil {
		return "the members of etcd cannot be listed: " + err.Error(), nil
	}
	nodes, err := r.Cluster.Nodes(ctx)
	if err != nil {
		return "the Kubernetes API does not answer: " + err.Error(), nil
	}
	machines, errs := r.machines(ctx, append([]Node{r.node}, others...))
	healthy := map[string]bool{r.node.Name: EtcdProblem(machines[0], errs[0]) == ""}
	var reasons []string
	for i, other := range others {
		problem := EtcdProblem(machines[i+1], errs[i+1])
		if at := nodes[other.Name]; problem == "" && at.Ours && at.Unschedulable {
			problem = "is in its turn"
		}
		healthy[other.Name] = problem == ""
		if !slices.ContainsFunc(members, func(m talosapi.Member) bool { return m.Name == other.Name }) {
			problem = "is no member of etcd; " + joinsBefore(r.node)
		}
		if problem != "" {
			reasons = append(reasons, other.Name+": "+problem)
		}
	}
	if missing, err := r.quorum(members, healthy); missing != "" || err != nil {
		return missing + because(reasons), err
	}
	if r.lost() {
		return "", nil
	}
	return list(reasons), nil
}

// joinsBefore says how a node that has not joined does so before another one leaves.
func joinsBefore(leaves Node) string {
	return "let it join first, by a run in which " + leaves.Name + " is declared as before"
}

func because(reasons []string) string {
	if len(reasons) == 0 {
		return ""
	}
	return " (" + list(reasons) + ")"
}

// quorum returns why etcd could not remove the node's member, or would have no quorum afterwards; "" if there is nothing to remove.
func (r *removal) quorum(members []talosapi.Member, healthy map[string]bool) (missing string, err error) {
	var own, voters, now, after int
	learner := ""
	for _, member := range members {
		switch mine := r.isOwn(member); {
		case member.Learner && !mine:
			learner = member.Title()
		case member.Learner:
		case mine:
			own++
			voters++
			if healthy[member.Name] {
				now++
			}
		default:
			voters++
			if healthy[member.Name] {
				now++
				after++
			}
		}
	}
	left := voters - own
	switch {
	case own == 0:
		return "", nil
	case left == 0:
		return "", errors.New("it is the only member of etcd with a vote; add another control plane first, and let it join")
	case now < voters/2+1:
		return fmt.Sprintf("etcd has no quorum: %d of its %d members are healthy, and %d are needed", now, voters, voters/2+1), nil
	case after < left/2+1:
		return fmt.Sprintf("without it, %d of etcd's %d members are healthy, and %d are needed", after, left, left/2+1), nil
	case learner != "":
		return learner + " is a member of etcd without a vote yet", nil
	}
	return "", nil
}

// drain evicts the pods of the node. Unlike a node that comes back, it cannot keep them.
func (r *removal) drain(ctx context.Context) error {
	nodes, err := r.nodes(ctx)
	if err != nil {
		return err
	}
	if takesPods(nodes, r.node) {
		return r.Engine.drain(ctx, r.node)
	}
	return r.CheckPods(ctx, r.node)
}

// CheckPods returns an error if nodes that leave have pods that no node takes which stays. Ask it of all nodes together that a run removes:
// the last of them alone would be refused, after the others are gone.
func (e *Engine) CheckPods(ctx context.Context, leaving ...Node) error {
	nodes, err := e.nodes(ctx)
	if err != nil || takesPods(nodes, leaving...) {
		return err
	}
	for _, node := range leaving {
		pods, err := e.Cluster.Pods(ctx, node.Name)
		pods = slices.DeleteFunc(pods, func(p Pod) bool { return p.Stays })
		switch {
		case err != nil:
			return err
		case len(pods) > 0 && nodes[node.Name].Ready:
			return fmt.Errorf("no node that stays takes the %d pods of %s, such as %s; add a node first, and let it join, or evict them by hand: "+
				"kubectl drain %[2]s --ignore-daemonsets --delete-emptydir-data", len(pods), node.Name, pods[0])
		}
	}
	return nil
}

// leaveEtcd makes another member the leader, and removes the node's members by their ids, through another control plane.
func (r *removal) leaveEtcd(ctx context.Context) error {
	own, missing := r.ownMembers(ctx)
	if missing == "" && len(own) == 0 {
		return nil
	}
	if r.answers {
		err := r.Until(ctx, handOnTimeout, 0, r.node.Name+"'s etcd", func(ctx context.Context) (string, error) {
			if err := r.from.ForfeitLeadership(ctx, r.node); err != nil {
				return "it does not hand on its leadership: " + err.Error(), nil
			}
			return "", nil
		})
		if ctx.Err() != nil {
			return err
		}
		if err != nil { // etcd elects a leader itself when the member is gone
			r.Say("%s: %v", r.node.Name, err)
		}
		StepAside(ctx, r.from, r.node, r.others(r.node), r.Say)
	}
	return r.Until(ctx, SpareTimeout, 0, r.node.Name+"'s member of etcd",
		func(ctx context.Context) (string, error) {
			own, missing := r.ownMembers(ctx)
			if missing != "" || len(own) == 0 {
				return missing, nil
			}
			if missing, err := r.spare(ctx); missing != "" || err != nil {
				return missing, err
			}
			return r.removeMember(ctx, own[0]), nil
		})
}

// removeMember asks the other control planes, one after the other, to remove a member. It returns what remains to be done: the next look
// shows whether the member is gone.
func (r *removal) removeMember(ctx context.Context, member talosapi.Member) (missing string) {
	var err error
	for _, other := range r.others(r.node) {
		if err = r.from.RemoveMember(ctx, other, member.ID); err == nil || errors.Is(err, ErrGone) {
			r.Say("%s: its member of etcd, %x, is removed", r.node.Name, member.ID)
			return "etcd still lists it"
		}
	}
	return fmt.Sprintf("member %x cannot be removed: %v", member.ID, err)
}

// shutDown ends the machine, and waits until neither its Talos API answers nor its Node object is Ready.
func (r *removal) shutDown(ctx context.Context) error {
	if !r.answers {
		return nil
	}
	asked := false
	return r.Until(ctx, OffTimeout, StableFor, r.node.Name+"'s end",
		func(ctx context.Context) (string, error) {
			nodes, err := r.Cluster.Nodes(ctx)
			if err != nil {
				return "the Kubernetes API does not answer: " + err.Error(), nil
			}
			machine, err := r.Cluster.Machine(ctx, r.node)
			if err == nil && !asked {
				if err := r.from.Shutdown(ctx, r.node); err != nil {
					return "it cannot be shut down: " + err.Error(), nil
				}
				r.Say("%s: shuts down", r.node.Name)
				asked = true
			}
			switch {
			case err == nil:
				return "the machine is " + cmp.Or(machine.Stage, "on"), nil
			case nodes[r.node.Name].Ready:
				return "its Node object is still Ready", nil
			}
			return "", nil
		})
}

// stillServes waits until Ceph serves all data without the machine, which is off now and has its disks still. A machine that was silent
// before was asked for then.
func (r *removal) stillServes(ctx context.Context) error {
	if !r.answers || len(r.Leaving) == 0 {
		return nil
	}
	stable := max(StableFor, r.Settle.Duration)
	return r.untilHeld(ctx, SpareTimeout+stable, stable, "Ceph without "+r.node.Name, r.Leaving, time.Now())
}

// deleteNode deletes the Node object, and waits until it is gone.
func (r *removal) deleteNode(ctx context.Context) error {
	return r.Until(ctx, SpareTimeout, 0, r.node.Name+"'s Node object",
		func(ctx context.Context) (string, error) {
			nodes, err := r.Cluster.Nodes(ctx)
			if err != nil {
				return "the Kubernetes API does not answer: " + err.Error(), nil
			}
			if _, exists := nodes[r.node.Name]; !exists {
				return "", nil
			}
			if err := r.from.DeleteNode(ctx, r.node.Name); err != nil && !errors.Is(err, ErrGone) {
				return "it cannot be deleted: " + err.Error(), nil
			}
			return "it is being deleted", nil
		})
}
