package cluster

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/siderolabs/gen/xslices"
)

// Network declares the cluster's addresses. Talos, Cilium, the gates and the cluster settings read these values. All addresses
// except those of name servers and time servers are in NodeCIDR, and each has one purpose.
type Network struct {
	// The machines' network.
	NodeCIDR netip.Prefix `json:"nodeCIDR" config:"required" form:"ipv4-network" bits:"8-29" example:"10.25.11.0/24"`
	// Default route of the machines.
	Gateway netip.Addr `json:"gateway" form:"ipv4-address" follows:"the first address of network.nodeCIDR" example:"10.25.11.1"`
	// Virtual address of the Kubernetes API, `https://VIP:6443`. One control plane has it at a time.
	VIP netip.Addr `json:"vip" config:"required" form:"ipv4-address" example:"10.25.11.10"`
	// The pods' network. Each node gets a /24 of it. Talos, Cilium and the cluster settings use this value.
	PodCIDR netip.Prefix `json:"podCIDR" form:"ipv4-network" bits:"8-24" default:"10.244.0.0/16" example:"10.246.0.0/16"`
	// The Services' network. The cluster's DNS is its tenth address.
	ServiceCIDR netip.Prefix `json:"serviceCIDR" form:"ipv4-network" bits:"12-28" default:"10.96.0.0/16" example:"10.245.0.0/16"`
	// DNS servers of the machines.
	Nameservers []netip.Addr `json:"nameservers" form:"ipv4-address" items:"1-" follows:"network.gateway" example:"[9.9.9.9, 149.112.112.112]"`
	// Time servers of the machines, asked by NTP (UDP 123). Without any, Talos asks time.cloudflare.com, since 1.14 by NTS, which needs TCP
	// 4460, too. Kubernetes does not start on a machine before it has the time.
	NTP []string `json:"ntp" form:"ntp-server" example:"[time.cloudflare.com]"`
	// The pool of addresses for Services of type LoadBalancer.
	LoadBalancers LoadBalancers `json:"loadBalancers" config:"required"`
	// The second family of a dual-stack cluster. Without the section, the cluster has IPv4 only.
	IPv6 *IPv6 `json:"ipv6"`
}

// LoadBalancers is the pool of addresses for Services of type LoadBalancer, and two addresses of the pool with a fixed use. No
// machine, VIP or gateway may be in the pool.
type LoadBalancers struct {
	// First address of the pool.
	Start netip.Addr `json:"start" config:"required" form:"ipv4-address" example:"10.25.11.100"`
	// Last address of the pool. It is part of the pool.
	Stop netip.Addr `json:"stop" config:"required" form:"ipv4-address" example:"10.25.11.150"`
	// Address of the mesh API server. It must be in the pool. Without `mesh.peers`, a cluster needs none.
	Mesh netip.Addr `json:"mesh" form:"ipv4-address" follows:"with mesh.peers, the first that gateway has not" example:"10.25.11.100"`
	// Address of the gateway (Envoy). It must be in the pool.
	Gateway netip.Addr `json:"gateway" form:"ipv4-address" follows:"the first of the pool that mesh has not" example:"10.25.11.120"`
	// How others find the machine that takes the traffic of an address. `l2`: one machine for each Service answers ARP requests
	// (and NDP requests, from Cilium 1.19 on); it needs nothing but the machines' own network. `bgp`: every machine announces the
	// addresses to the routers in `bgp`. `none`: nothing announces them, unless manifests in Git do.
	Announce Announcement `json:"announce" default:"l2" example:"bgp"`
	// The BGP sessions of the machines. It goes together with `announce: bgp`.
	BGP *BGP `json:"bgp"`
}

// Announcement is how the addresses of Services become known outside of the cluster.
type Announcement string

// The kinds of announcements.
const (
	AnnounceL2   Announcement = "l2"
	AnnounceBGP  Announcement = "bgp"
	AnnounceNone Announcement = "none"
)

// Choices lists the kinds of announcements.
func (Announcement) Choices() []string { return texts(AnnounceL2, AnnounceBGP, AnnounceNone) }

// BGP declares the BGP sessions over which all machines announce the addresses of Services, both families.
type BGP struct {
	// Number of the machines' autonomous system.
	ASN int `json:"asn" config:"required" range:"1-4294967295" example:"64512"`
	// Routers that every machine opens a session to.
	Peers []BGPPeer `json:"peers" config:"required" items:"1-"`
}

// BGPPeer is a router that takes the machines' routes.
type BGPPeer struct {
	// Address of the router.
	Address netip.Addr `json:"address" config:"required" form:"ipv4-address" example:"10.25.11.1"`
	// Number of its autonomous system.
	ASN int `json:"asn" config:"required" range:"1-4294967295" example:"64513"`
}

// Size returns the number of IPv4 addresses in the pool; 0 if an end is missing.
func (p LoadBalancers) Size() int {
	if !p.Start.Is4() || !p.Stop.Is4() {
		return 0
	}
	start, stop := p.Start.As4(), p.Stop.As4()
	return int(binary.BigEndian.Uint32(stop[:])-binary.BigEndian.Uint32(start[:])) + 1
}

// Ports that several parts of a cluster agree on.
const (
	APIPort       = 6443 // the Kubernetes API
	KubePrismPort = 7445 // KubePrism, Talos's load balancer for the Kubernetes API on the loopback of every node
)

// DNSDomain is the domain of the cluster's Services. It is Talos's default.
const DNSDomain = "cluster.local"

// podBitsPerNode is the prefix length of a node's share of the pod network; in Kubernetes: --node-cidr-mask-size.
const podBitsPerNode = 24

// Endpoint returns the URL of the Kubernetes API.
func (n Network) Endpoint() string {
	return "https://" + netip.AddrPortFrom(n.VIP, APIPort).String()
}

// PodCIDRs returns the pods' networks, IPv4 first. The first one determines the primary family of the cluster.
func (n Network) PodCIDRs() []netip.Prefix {
	return xslices.Map(n.families(), func(f family) netip.Prefix { return f.pods })
}

// ServiceCIDRs returns the Services' networks, IPv4 first.
func (n Network) ServiceCIDRs() []netip.Prefix {
	return xslices.Map(n.families(), func(f family) netip.Prefix { return f.services })
}

// DNS returns the addresses of the cluster's DNS: the tenth address of each Service network, which Talos configures in every
// kubelet.
func (n Network) DNS() []netip.Addr {
	var addresses []netip.Addr
	for _, services := range n.ServiceCIDRs() {
		address := services.Masked().Addr()
		for range 10 {
			address = address.Next()
		}
		addresses = append(addresses, address)
	}
	return addresses
}

// Resolvers returns the DNS servers of the machines, IPv4 first.
func (n Network) Resolvers() []netip.Addr {
	if n.IPv6 == nil {
		return n.Nameservers
	}
	return slices.Concat(n.Nameservers, n.IPv6.Nameservers)
}

// derive sets the addresses that follow others. peers says whether the cluster is in a mesh.
func (n *Network) derive(peers bool, findings *Findings) {
	if !n.Gateway.IsValid() && n.NodeCIDR.IsValid() && !findings.Unusable("network.gateway") {
		n.Gateway = n.NodeCIDR.Masked().Addr().Next()
	}
	if n.Nameservers == nil && n.Gateway.IsValid() {
		n.Nameservers = []netip.Addr{n.Gateway}
	}
	pool := &n.LoadBalancers
	if !pool.Gateway.IsValid() && !findings.Unusable("network.loadBalancers.gateway") {
		pool.Gateway = pool.firstBut(pool.Mesh)
	}
	if peers && !pool.Mesh.IsValid() && !findings.Unusable("network.loadBalancers.mesh") {
		pool.Mesh = pool.firstBut(pool.Gateway)
	}
}

// firstBut returns the first address of the pool that is not taken. The gateway gets it before the mesh: a cluster that joins a mesh keeps
// the address of its gateway.
func (p LoadBalancers) firstBut(taken netip.Addr) netip.Addr {
	if p.Start.IsValid() && p.Start == taken {
		return p.Start.Next()
	}
	return p.Start
}

// network checks the IPv4 networks of the cluster, and the addresses in them.
func (c clusterCheck) network() {
	n, f := c.Network, c.Network.ipv4()
	c.disjoint(f.networks())
	c.podShares("network.podCIDR", n.PodCIDR, podBitsPerNode)
	c.address(f, "network.gateway", n.Gateway)
	c.address(f, "network.vip", n.VIP)
	if !c.poolEnds(f) {
		return
	}
	c.pooled("network.loadBalancers.mesh", n.LoadBalancers.Mesh)
	c.pooled("network.loadBalancers.gateway", n.LoadBalancers.Gateway)
	c.outsidePool(f, "network.gateway", n.Gateway)
	c.outsidePool(f, "network.vip", n.VIP)
	c.announcements()
}

// disjoint checks that no two networks overlap.
func (c clusterCheck) disjoint(all []named) {
	for i, one := range all {
		for _, other := range all[:i] {
			if one.network.IsValid() && other.network.IsValid() && one.network.Overlaps(other.network) {
				c.Found(one.path, "pick a disjoint range", "%s overlaps %s %s", one.network, other.path, other.network)
			}
		}
	}
}

// podShares checks that the pod network has a share for each machine. share is the prefix length of a share.
func (c clusterCheck) podShares(path string, pods netip.Prefix, share int) {
	nodes := len(c.Machines())
	if !pods.IsValid() || share-pods.Bits() > 30 {
		return
	}
	if shares := 1 << (share - pods.Bits()); shares < nodes {
		c.Found(path, "pick a larger one", "%s has room for %d nodes with a /%d each, and there are %d nodes", pods, shares, share, nodes)
	}
}

// poolEnds checks the two ends of a pool, and reports whether they are in order.
func (c clusterCheck) poolEnds(f family) bool {
	path := f.path + ".loadBalancers"
	start, stop := c.usable(f, path+".start", f.start), c.usable(f, path+".stop", f.stop)
	if start && stop && f.stop.Less(f.start) {
		c.Found(path+".stop", "swap them", "%s is before %s.start %s", f.stop, path, f.start)
		return false
	}
	return true
}

// announcements checks that the addresses of Services can be announced as declared.
func (c clusterCheck) announcements() {
	const path = "network.loadBalancers"
	pool := c.Network.LoadBalancers
	switch {
	case pool.Announce == AnnounceBGP && pool.BGP == nil && !c.Unusable(path+".bgp"):
		c.Found(path+".announce", "add "+path+".bgp, or write l2", "%s needs routers", pool.Announce)
	case pool.Announce != AnnounceBGP && pool.Announce != "" && pool.BGP != nil:
		c.Found(path+".bgp", "write "+path+".announce: bgp, or remove it", "is not used, because announce is %s", pool.Announce)
	case pool.BGP != nil:
		c.system(path+".bgp.asn", pool.BGP.ASN)
		seen := map[netip.Addr]int{}
		for i, peer := range pool.BGP.Peers {
			c.system(ItemPath(path+".bgp.peers", i)+".asn", peer.ASN)
			at := ItemPath(path+".bgp.peers", i) + ".address"
			if other, twice := seen[peer.Address]; twice && peer.Address.IsValid() {
				c.Found(at, "keep one", "%s is that of %s.bgp.peers[%d]", peer.Address, path, other)
			}
			seen[peer.Address] = i
			c.outsidePool(c.Network.ipv4(), at, peer.Address)
		}
	}
}

// system refuses the numbers that no autonomous system has: RFC 7607, RFC 6793 (AS_TRANS) and RFC 7300.
func (c clusterCheck) system(path string, number int) {
	if slices.Contains([]int{23456, 65535, 4294967295}, number) {
		c.Found(path, "write a private one, such as 64512", "%d is reserved, and routers refuse it", number)
	}
}

// announcement6 checks that the pool of IPv6 addresses can be announced.
func (c clusterCheck) announcement6() {
	const path = "network.loadBalancers"
	pool, six, cilium := c.Network.LoadBalancers, c.Network.IPv6, c.Cilium.Version
	if pool.Announce == AnnounceL2 && six != nil && six.LoadBalancers != nil && cilium != "" && olderThan(cilium, 1, 19) {
		c.Found(path+".announce", "write bgp or none, take a newer Cilium, or remove "+ipv6Path+".loadBalancers",
			"%s announces no IPv6 address before Cilium 1.19, and cilium.version is %s", pool.Announce, cilium)
	}
}

// pooled checks that the address of a Service is in the pool.
func (c clusterCheck) pooled(path string, address netip.Addr) {
	f := c.Network.ipv4()
	if address.IsValid() && f.start.IsValid() && f.stop.IsValid() && !f.pools(address) {
		c.Found(path, "pick an address of the pool", "%s is outside the pool %s to %s", address, f.start, f.stop)
		return
	}
	c.address(f, path, address)
}

// outsidePool checks that an address is not in the pool for Services, and reports whether it is not.
func (c clusterCheck) outsidePool(f family, path string, address netip.Addr) bool {
	if !f.pools(address) {
		return true
	}
	c.Found(path, "pick an address outside of it, or move the pool", "%s is in the pool %s.loadBalancers, %s to %s",
		address, f.path, f.start, f.stop)
	return false
}

// address checks an address of the machines' network, which must be unique.
func (c clusterCheck) address(f family, path string, address netip.Addr) {
	if c.usable(f, path, address) {
		c.take("address", path, address.String())
	}
}

// usable reports whether the address is usable in the machines' network. If not, it adds a problem.
func (c clusterCheck) usable(f family, path string, address netip.Addr) bool {
	switch {
	case !address.IsValid():
		return false
	case !f.nodes.IsValid():
		return true
	case !f.nodes.Contains(address):
		c.Found(path, fmt.Sprintf("pick an address in %s", f.nodes), "%s is outside %s.nodeCIDR", address, f.path)
	case f.noHost(address) != "":
		c.Found(path, "pick another address", "%s is %s", address, f.noHost(address))
	default:
		return true
	}
	return false
}
