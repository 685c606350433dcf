package cluster

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/siderolabs/gen/xslices"
)

// Compare finds conflicts between clusters, which form one mesh on networks that are connected. It returns, for each stack, its
// conflicts with the stacks before it. There is no other comparison: of stack files, of a stack with its peers, and of a stack with others
// as they run.
func Compare(clusters []*Cluster) []Problems {
	all := make([]Problems, len(clusters))
	for i, own := range clusters {
		var findings Findings
		for _, other := range clusters[:i] {
			comparison{&findings, own, other}.compare()
		}
		all[i] = findings.All()
	}
	return all
}

// comparison compares a stack with another one.
type comparison struct {
	*Findings
	own, other *Cluster
}

// compare finds values that both have and only one can have. Values that must be equal are compared in the files only: the next run changes
// a stack that runs with the old value.
func (c comparison) compare() {
	c.claims()
	c.vmIDs()
	c.disjoint()
	c.infrastructure()
	c.storage()
	if !c.own.Running && !c.other.Running {
		c.proxmoxName()
		c.mesh()
	}
}

// taken adds a problem with what the other stack has, too.
func (c comparison) taken(path, remedy, format string, args ...any) {
	if c.other.Running {
		remedy += fmt.Sprintf("; if %s has given it up in its file, run its `pulumi up` first", c.other.Stack)
	}
	c.Found(path, remedy, format, args...)
}

// theOther is the name of the other stack in a problem.
func (c comparison) theOther() string {
	if c.other.Running {
		return c.other.Stack + " as it runs"
	}
	return c.other.Stack
}

// claim is a value that only one stack can have.
type claim struct {
	path   string
	key    any // the same for values that exclude each other
	value  any
	inside inside
}

// inside says that a value matters in a mesh only: outside of the cluster, nothing else sees it.
type inside struct {
	is, byDefault bool
}

// apart reports whether two values inside of clusters may be the same: one of the two files does not have the value, which is then the
// default, and the clusters are in no mesh.
func (c comparison) apart(own, theirs inside) bool {
	return own.is && theirs.is && (own.byDefault || theirs.byDefault) && !(c.own.inMesh() && c.other.inMesh())
}

// inside returns that of a key whose value matters in a mesh only.
func (s *Cluster) inside(path string) inside { return inside{true, s.Given != nil && !s.Given[path]} }

// inMesh reports whether the cluster is in a mesh. A running cluster that may be in a mesh has the mesh's address.
func (s *Cluster) inMesh() bool {
	return s.Mesh.IsMember() || s.Running && s.Network.LoadBalancers.Mesh.IsValid()
}

// claims checks the values that must be unique among all stacks.
func (c comparison) claims() {
	owner := xslices.ToMap(c.other.claims(), func(theirs claim) (any, claim) { return theirs.key, theirs })
	for _, own := range c.own.claims() {
		if theirs, taken := owner[own.key]; taken && !c.apart(own.inside, theirs.inside) {
			c.taken(own.path, "pick another", "%v is %s of %s", own.value, theirs.path, c.theOther())
		}
	}
}

// claims returns the values of the stack that no other may have. A cluster may have the name of a machine.
func (s *Cluster) claims() []claim {
	pool := s.Network.LoadBalancers
	all := []claim{
		{"cluster.id", s.Identity.ID, s.Identity.ID, s.inside("cluster.id")},
		{path: "cluster.name", key: [2]any{"cluster.name", s.Identity.Name}, value: s.Identity.Name},
	}
	address := func(path string, address netip.Addr) {
		if address.IsValid() {
			all = append(all, claim{path: path, key: address, value: address})
		}
	}
	if domain := s.GitOps.Domain(); domain != "" {
		all = append(all, claim{path: "gitops.settings." + DomainSetting, key: [2]any{DomainSetting, domain}, value: domain})
	}
	address("network.vip", s.Network.VIP)
	address("network.loadBalancers.mesh", pool.Mesh)
	address("network.loadBalancers.gateway", pool.Gateway)
	for p, pool := range s.NodePools {
		for n, node := range pool.Nodes {
			path := func(key string) string { return s.nodePath(p, n, key) }
			all = append(all, claim{path: path("name"), key: node.Name, value: node.Name})
			if node.MAC != "" {
				all = append(all, claim{path: path("mac"), key: node.MAC, value: node.MAC})
			}
			address(path("address"), node.Address)
			address(path("address6"), node.Address6)
		}
	}
	return all
}

// nodePath returns the path of a machine's key. Of a stack that runs, only the machine's name is known.
func (s *Cluster) nodePath(pool, node int, key string) string {
	if s.Running {
		return key + " of machine " + s.NodePools[pool].Nodes[node].Name
	}
	return s.NodePools[pool].Nodes[node].pathOf(ItemPath("nodePools", pool), node, key)
}

// vmIDs checks the VM ids, which must be unique in a Proxmox cluster.
func (c comparison) vmIDs() {
	if !sameProxmox(c.own, c.other) {
		return
	}
	remedy := "pick another"
	if !sameEndpoint(c.own, c.other) { // proxmox.cluster may have its default in both
		remedy += ", or set proxmox.cluster, if they are two Proxmox clusters"
	}
	owner := map[int]string{}
	for p, pool := range c.other.NodePools {
		for n, node := range pool.Nodes {
			owner[node.VMID] = c.other.nodePath(p, n, "vmId")
		}
	}
	for p, pool := range c.own.NodePools {
		for n, node := range pool.Nodes {
			if path, taken := owner[node.VMID]; taken && node.VMID != 0 {
				c.taken(c.own.nodePath(p, n, "vmId"), remedy, "%d is %s of %s", node.VMID, path, c.theOther())
			}
		}
	}
}

// proxmoxName checks that one Proxmox cluster has one name, which is the region of all its nodes.
func (c comparison) proxmoxName() {
	if own, theirs := c.own.Proxmox.Cluster, c.other.Proxmox.Cluster; sameEndpoint(c.own, c.other) && own != theirs {
		c.Found("proxmox.cluster", "write the same in both", "%s is %s for %s, at the same endpoint", own, theirs, c.other.Stack)
	}
}

// sameProxmox reports whether the machines of both stacks may be in one Proxmox cluster. The endpoints of one Proxmox cluster can
// differ, because each of its nodes serves the API.
func sameProxmox(a, b *Cluster) bool {
	return a.Proxmox.Cluster == b.Proxmox.Cluster || sameEndpoint(a, b)
}

func sameEndpoint(a, b *Cluster) bool {
	return sameHost(a.Proxmox.Endpoint) == sameHost(b.Proxmox.Endpoint)
}

// sameHost is an https URL without a path in the one spelling of all that mean the same.
func sameHost(endpoint string) string {
	return strings.TrimSuffix(strings.ToLower(strings.TrimSuffix(endpoint, "/")), ":443")
}

// addressRange is a network, or a pool of addresses.
type addressRange struct {
	path        string
	network     netip.Prefix // invalid for a pool
	first, last netip.Addr   // of a pool; invalid for a network
	inside      inside
}

func (s addressRange) String() string {
	if s.network.IsValid() {
		return s.network.String()
	}
	return fmt.Sprintf("%s to %s", s.first, s.last)
}

// overlaps compares networks with networks, and pools with pools. It needs no comparison of a pool with a network, because each
// pool is in its own network.
func (s addressRange) overlaps(other addressRange) bool {
	if s.network.IsValid() {
		return other.network.IsValid() && s.network.Overlaps(other.network)
	}
	return !other.network.IsValid() && s.first.Compare(other.last) <= 0 && other.first.Compare(s.last) <= 0
}

// disjoint checks that no network or pool of the stack overlaps one of the other.
func (c comparison) disjoint() {
	for _, own := range c.own.ranges() {
		for _, theirs := range c.other.ranges() {
			if own.overlaps(theirs) && !c.apart(own.inside, theirs.inside) {
				c.taken(own.path, "pick a disjoint range", "%s overlaps %s %s of %s", own, theirs.path, theirs, c.theOther())
			}
		}
	}
}

// infrastructure checks that the routers and the Proxmox endpoint, which exist before both clusters, are no machine, VIP or network of the
// other. They may be in the pool of its Services. In a mesh, the other servers that this cluster needs before it exists are no pod or
// Service of the other cluster: nobody outside reaches those addresses. They may be its machines, if it comes first.
func (c comparison) infrastructure() {
	outsidePools := func(address netip.Addr) string {
		if slices.ContainsFunc(c.other.Network.families(), func(f family) bool { return f.pools(address) }) {
			return ""
		}
		return c.other.OwnAddress(address)
	}
	if bgp := c.own.Network.LoadBalancers.BGP; bgp != nil {
		for i, peer := range bgp.Peers {
			c.notOf(server{ItemPath("network.loadBalancers.bgp.peers", i) + ".address", peer.Address.String()}, outsidePools)
		}
	}
	for _, one := range c.own.servers() {
		if one.path == "proxmox.endpoint" {
			c.notOf(one, outsidePools)
		} else if c.own.inMesh() && c.other.inMesh() {
			c.notOf(one, c.other.insideAddress)
		}
	}
}

// notOf checks that a server that is written as an address is no part of the other cluster, of which has says what has an address.
func (c comparison) notOf(one server, has func(netip.Addr) string) {
	address, err := netip.ParseAddr(one.host)
	if err != nil {
		return
	}
	if what := has(address); what != "" {
		c.taken(one.path, "write another address", "%s is %s of %s", address, what, c.theOther())
	}
}

// ranges returns the networks and pools that are known.
func (s *Cluster) ranges() []addressRange {
	var all []addressRange
	for _, f := range s.Network.families() {
		for i, one := range f.networks() {
			network := addressRange{path: one.path, network: one.network}
			if i > 0 { // of pods and Services
				network.inside = s.inside(one.path)
			}
			all = append(all, network)
		}
		all = append(all, addressRange{path: f.path + ".loadBalancers", first: f.start, last: f.stop})
	}
	return slices.DeleteFunc(all, func(one addressRange) bool { return !one.network.IsValid() && !one.first.IsValid() })
}
