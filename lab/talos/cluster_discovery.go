package talos

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	clusterres "github.com/siderolabs/talos/pkg/machinery/resources/cluster"
)

// affiliateTTL is the time after which the discovery service removes a node that does not report.
const affiliateTTL = 30 * time.Minute

// affiliate is what the other nodes of the cluster know of a node. Guarded by site.mu.
type affiliate struct {
	hostname  string
	addresses []netip.Addr
	nodeType  configmachine.Type
	version   string
	boot      *boot
	gone      time.Time // when it stopped running; zero while it runs
	// fingerprint changes whenever one of the published fields changes.
	fingerprint string
}

// publishMembers publishes the cluster's members on every node. reconcile calls it.
func (c *cluster) publishMembers() {
	s := c.site
	s.mu.Lock()
	var running []*boot
	for _, m := range s.machines {
		if b := m.boot; b != nil && b.cluster == c {
			running = append(running, b)
		}
	}
	byName := map[string]*affiliate{} // a recreated node replaces the former one of the same name
	for _, id := range slices.Sorted(maps.Keys(c.nodes)) {
		a := c.nodes[id]
		alive := slices.Contains(running, a.boot)
		switch {
		case alive:
			a.gone = time.Time{}
		case a.gone.IsZero():
			a.gone = time.Now()
		case time.Since(a.gone) > affiliateTTL:
			delete(c.nodes, id)
			continue
		}
		if other := byName[a.hostname]; other == nil || !other.gone.IsZero() {
			byName[a.hostname] = a
		}
	}
	members := map[string]affiliate{}
	for name, a := range byName {
		if a.fingerprint == "" {
			a.fingerprint = fmt.Sprint(a.boot.inst.nodeID, a.hostname, a.addresses, a.nodeType, a.version)
		}
		members[name] = *a
	}
	s.mu.Unlock()
	for _, b := range running {
		b.publishMembers(members)
	}
}

// removeNode removes a node that was reset.
func (c *cluster) removeNode(nodeID string) {
	c.site.mu.Lock()
	delete(c.nodes, nodeID)
	c.site.mu.Unlock()
	c.site.change.Notify()
}

func operatingSystem(version string) string { return fmt.Sprintf("Talos (%s)", version) }

// published is what a node has published of a member.
type published struct{ nodeID, fingerprint string }

// publishMembers publishes the members that discovery finds, and their affiliates. It writes only what has changed
// since the last call, because a large cluster is reconciled often while it starts. reconcile calls it, so it never runs twice at once.
func (b *boot) publishMembers(members map[string]affiliate) {
	for name, former := range b.members {
		if _, known := members[name]; !known {
			b.res.Remove(clusterres.NewMember(clusterres.NamespaceName, name).Metadata())
			b.res.Remove(clusterres.NewAffiliate(clusterres.NamespaceName, former.nodeID).Metadata())
			delete(b.members, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		a := members[name]
		former := b.members[name]
		if former.fingerprint == a.fingerprint {
			continue
		}
		if b.members == nil {
			b.members = map[string]published{}
		}
		nodeID := a.boot.inst.nodeID
		if former.nodeID != "" && former.nodeID != nodeID { // the node was made anew
			b.res.Remove(clusterres.NewAffiliate(clusterres.NamespaceName, former.nodeID).Metadata())
		}
		b.members[name] = published{nodeID, a.fingerprint}
		member := clusterres.NewMember(clusterres.NamespaceName, name)
		*member.TypedSpec() = clusterres.MemberSpec{
			NodeID: nodeID, Addresses: a.addresses, Hostname: name, MachineType: a.nodeType, OperatingSystem: operatingSystem(a.version),
		}
		if a.nodeType.IsControlPlane() {
			member.TypedSpec().ControlPlane = &clusterres.ControlPlane{APIServerPort: constants.DefaultControlPlanePort}
		}
		b.res.Put(member)
		found, of := clusterres.NewAffiliate(clusterres.NamespaceName, nodeID), member.TypedSpec()
		*found.TypedSpec() = clusterres.AffiliateSpec{
			NodeID: nodeID, Addresses: of.Addresses, Hostname: name, Nodename: name, MachineType: of.MachineType,
			OperatingSystem: of.OperatingSystem, ControlPlane: of.ControlPlane,
		}
		b.res.Put(found)
	}
}
