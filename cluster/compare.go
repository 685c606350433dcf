package cluster

import (
	"fmt"
	"net/netip"
	"strings"
)

// Compare finds conflicts between clusters, which form one mesh on networks that are connected. It returns, for each stack, its
// conflicts with the stacks before it.
func Compare(clusters []*Cluster) []Problems {
	c := comparison{owner: map[any]string{}}
	all := make([]Problems, len(clusters))
	for i, stack := range clusters {
		c.Findings = Findings{}
		c.claims(stack)
		c.disjoint(stack)
		all[i] = c.All()
		c.before = append(c.before, stack)
	}
	return all
}

// comparison compares each stack with the stacks before it.
type comparison struct {
	Findings
	before []*Cluster
	owner  map[any]string // value → path and stack that have it
}

// claims checks the values that must be unique among all stacks.
func (c *comparison) claims(s *Cluster) {
	c.claim(s, "cluster.id", s.Identity.ID)
	c.claim(s, "cluster.name", s.Identity.Name)
	c.claim(s, "network.vip", s.Network.VIP)
	for p, pool := range s.NodePools {
		for n, node := range pool.Nodes {
			path := fmt.Sprintf("nodePools[%d].nodes[%d]", p, n)
			c.claim(s, path+".name", node.Name)
			c.claim(s, path+".mac", node.MAC)
			c.claim(s, path+".address", node.Address)
			if node.Address6.IsValid() {
				c.claim(s, path+".address6", node.Address6)
			}
		}
	}
	c.claimVMs(s)
}

// claim records that a stack has a value, or adds a problem if another stack has it. A cluster may have the name of a machine.
func (c *comparison) claim(s *Cluster, path string, value any) {
	key := value
	if path == "cluster.name" {
		key = [2]any{path, value}
	}
	if owner, taken := c.owner[key]; taken {
		c.Found(path, "pick another", "%v is %s", value, owner)
		return
	}
	c.owner[key] = path + " of " + s.Stack
}

// claimVMs checks the VM ids, which must be unique in a Proxmox cluster.
func (c *comparison) claimVMs(s *Cluster) {
	for p, pool := range s.NodePools {
		for n, node := range pool.Nodes {
			for _, other := range c.before {
				path, taken := other.vm(node.VMID)
				if !taken || !sameProxmox(s, other) {
					continue
				}
				remedy := "pick another"
				if !sameEndpoint(s, other) { // proxmox.cluster may have its default in both
					remedy += ", or set proxmox.cluster, if they are two Proxmox clusters"
				}
				c.Found(fmt.Sprintf("nodePools[%d].nodes[%d].vmId", p, n), remedy, "%d is %s of %s", node.VMID, path, other.Stack)
				break
			}
		}
	}
}

// vm returns the path of a VM id.
func (s *Cluster) vm(id int) (string, bool) {
	for p, pool := range s.NodePools {
		for n, node := range pool.Nodes {
			if node.VMID == id {
				return fmt.Sprintf("nodePools[%d].nodes[%d].vmId", p, n), true
			}
		}
	}
	return "", false
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

// disjoint checks that no network or pool of the stack overlaps one of another stack.
func (c *comparison) disjoint(s *Cluster) {
	for _, own := range s.ranges() {
		for _, other := range c.before {
			for _, theirs := range other.ranges() {
				if own.overlaps(theirs) {
					c.Found(own.path, "pick a disjoint range", "%s overlaps %s %s of %s", own, theirs.path, theirs, other.Stack)
				}
			}
		}
	}
}

func (s *Cluster) ranges() []addressRange {
	n := s.Network
	all := []addressRange{
		{path: "network.nodeCIDR", network: n.NodeCIDR},
		{path: "network.podCIDR", network: n.PodCIDR},
		{path: "network.serviceCIDR", network: n.ServiceCIDR},
		{path: "network.loadBalancers", first: n.LoadBalancers.Start, last: n.LoadBalancers.Stop},
	}
	if six := n.IPv6; six != nil {
		all = append(all,
			addressRange{path: ipv6Path + ".nodeCIDR", network: six.NodeCIDR},
			addressRange{path: ipv6Path + ".podCIDR", network: six.PodCIDR},
			addressRange{path: ipv6Path + ".serviceCIDR", network: six.ServiceCIDR})
		if pool := six.LoadBalancers; pool != nil {
			all = append(all, addressRange{path: ipv6Path + ".loadBalancers", first: pool.Start, last: pool.Stop})
		}
	}
	return all
}
