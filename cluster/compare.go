package cluster

import (
	"fmt"
	"net/netip"
	"strings"
)

// Compare finds what two clusters cannot both have: their clusters are one mesh, on networks that reach each other.
// The problems of a stack, by its index, are those with the stacks before it.
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

// comparison compares one stack after the other with those before it.
type comparison struct {
	Findings
	before []*Cluster
	owner  map[any]string // who has a value: stack and path
}

// claims checks the values of which each stack has its own.
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

// claim gives a value to a stack, unless another stack has it. A cluster may be called like a machine.
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

// claimVMs checks the VM ids, of which each Proxmox cluster has its own.
func (c *comparison) claimVMs(s *Cluster) {
	for p, pool := range s.NodePools {
		for n, node := range pool.Nodes {
			for _, other := range c.before {
				if path, taken := other.vm(node.VMID); taken && sameProxmox(s, other) {
					c.Found(fmt.Sprintf("nodePools[%d].nodes[%d].vmId", p, n), "pick another", "%d is %s of %s", node.VMID, path, other.Stack)
					break
				}
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

// sameProxmox reports whether the machines of both stacks may be in one Proxmox cluster, which any of its nodes answers
// for.
func sameProxmox(a, b *Cluster) bool {
	return a.Proxmox.Cluster == b.Proxmox.Cluster || sameHost(a.Proxmox.Endpoint) == sameHost(b.Proxmox.Endpoint)
}

// sameHost is an https URL without a path in the one spelling of all that mean the same.
func sameHost(endpoint string) string {
	return strings.TrimSuffix(strings.ToLower(strings.TrimSuffix(endpoint, "/")), ":443")
}

// stretch is a network, or a pool of addresses.
type stretch struct {
	path        string
	network     netip.Prefix // invalid for a pool
	first, last netip.Addr   // of a pool
}

func (s stretch) String() string {
	if s.network.IsValid() {
		return s.network.String()
	}
	return fmt.Sprintf("%s to %s", s.first, s.last)
}

// overlaps compares networks with networks, and pools with pools. A pool is in its network anyway.
func (s stretch) overlaps(other stretch) bool {
	if s.network.IsValid() {
		return other.network.IsValid() && s.network.Overlaps(other.network)
	}
	return !other.network.IsValid() && s.first.Compare(other.last) <= 0 && other.first.Compare(s.last) <= 0
}

// disjoint checks that no network and no pool of the stack overlaps another stack's.
func (c *comparison) disjoint(s *Cluster) {
	for _, own := range s.stretches() {
		for _, other := range c.before {
			for _, theirs := range other.stretches() {
				if own.overlaps(theirs) {
					c.Found(own.path, "pick a disjoint range", "%s overlaps %s %s of %s", own, theirs.path, theirs, other.Stack)
				}
			}
		}
	}
}

func (s *Cluster) stretches() []stretch {
	n := s.Network
	all := []stretch{
		{path: "network.nodeCIDR", network: n.NodeCIDR},
		{path: "network.podCIDR", network: n.PodCIDR},
		{path: "network.serviceCIDR", network: n.ServiceCIDR},
		{path: "network.loadBalancers", first: n.LoadBalancers.Start, last: n.LoadBalancers.Stop},
	}
	if six := n.IPv6; six != nil {
		all = append(all,
			stretch{path: ipv6Path + ".nodeCIDR", network: six.NodeCIDR},
			stretch{path: ipv6Path + ".podCIDR", network: six.PodCIDR},
			stretch{path: ipv6Path + ".serviceCIDR", network: six.ServiceCIDR})
		if pool := six.LoadBalancers; pool != nil {
			all = append(all, stretch{path: ipv6Path + ".loadBalancers", first: pool.Start, last: pool.Stop})
		}
	}
	return all
}
