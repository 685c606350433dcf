package retire

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// MayHaveOSDs returns the nodes that leave and whose machines may have OSDs of Ceph, by the declared nodes with disks for the storage. What
// disks the nodes have that are not declared any more, only the cluster knows.
func (p Plan) MayHaveOSDs(stores []turn.Node) []string {
	var names []string
	for _, node := range p.Leave {
		replaced := slices.Contains(p.Replaced, node.Name)
		if slices.ContainsFunc(stores, func(store turn.Node) bool {
			return store.Name == node.Name || !replaced && store.Role == node.Role
		}) {
			names = append(names, node.Name)
		}
	}
	return names
}

// EmptyFirst says how a node with OSDs of Ceph leaves without the loss of a copy.
const EmptyFirst = "to lose no copy, let Ceph empty them before: docs/nodes.md, A node with an OSD of Ceph"

// osds are the ids of OSDs by the names of nodes that leave, joined by commas.
type osds map[string]string

// leavingOSDs warns of the nodes that leave with OSDs of Ceph. It refuses none: a dead machine cannot be emptied first, and the turn of
// each node asks whether Ceph serves all data without it.
func leavingOSDs(ctx context.Context, on turn.Cluster, plan Plan, provider bool, say func(string, ...any)) osds {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ceph, err := on.Ceph(ctx)
	if err != nil {
		if provider {
			say("whether the nodes that leave have OSDs of Ceph is not known: %v", err)
		}
		return nil
	}
	ids, stay := map[string][]string{}, map[string]bool{}
	for _, osd := range ceph.OSDs {
		isHost := func(node turn.Node) bool { return node.Name == osd.Host }
		if slices.ContainsFunc(plan.Leave, isHost) {
			ids[osd.Host] = append(ids[osd.Host], osd.ID)
		}
		if slices.ContainsFunc(plan.Stay, isHost) || slices.Contains(plan.Replaced, osd.Host) { // and is not one whose OSDs were not purged
			stay[osd.Host] = true
		}
	}
	found := osds{}
	for _, node := range plan.Leave {
		if of := ids[node.Name]; len(of) > 0 {
			found[node.Name] = strings.Join(of, ",")
			say("warning: %s has the OSDs %s of Ceph, which go with its machine; %s", node.Name, strings.Join(of, ", "), EmptyFirst)
		}
	}
	switch {
	case len(found) == 0 || len(stay) >= ceph.Copies:
	case len(stay) == 0:
		say("warning: no node with OSDs stays")
	default:
		say("warning: Ceph keeps %d copies, and %d nodes with OSDs stay: it cannot make the missing ones until storage.replicas is %[2]d, or "+
			"another node has OSDs", ceph.Copies, len(stay))
	}
	return found
}

// purge returns the command that removes the OSDs of a removed node from Ceph; "" if it had none.
func (o osds) purge(plan Plan, name string) string {
	ids := o[name]
	switch {
	case ids == "":
		return ""
	case slices.Contains(plan.Replaced, name):
		// With as many machines as copies, Ceph can do without the former OSDs only once the new ones have the copies.
		return name + ": once it has joined again, kubectl rook-ceph operator restart, and then " + turn.PurgeOSD + ids
	}
	return name + ": " + turn.PurgeOSD + ids
}
