package cluster

import (
	"fmt"
	"slices"
	"strings"
)

// place sets the Proxmox node of every machine that is not pinned. The n-th machine of a pool prefers the pool's n-th host,
// counted round. So a machine that is pinned, or added at the end of a pool, moves no other worker. If possible, no two control planes
// share a host: a control plane gives its preferred host to another one with less choice.
func (c *Cluster) place() {
	c.assign(func(pool *NodePool, node *Node) ([]string, bool) {
		if node.pinned = node.Host != ""; node.pinned {
			return []string{node.Host}, true
		}
		return pool.Hosts, false
	})
	for p := range c.NodePools {
		for n := range c.NodePools[p].Nodes {
			node := &c.NodePools[p].Nodes[n]
			node.home = node.Host
		}
	}
	c.empty()
}

// empty takes each machine from a Proxmox node under maintenance to another host of its pool, and no other machine anywhere. The machines
// of a pool take these hosts in turn, and control planes keep apart as in place.
func (c *Cluster) empty() {
	if len(c.Proxmox.Maintenance) == 0 {
		return
	}
	c.assign(func(pool *NodePool, node *Node) ([]string, bool) {
		if slices.Contains(c.Proxmox.Maintenance, node.home) {
			return c.inService(pool.Hosts), false
		}
		return []string{node.home}, true
	})
}

// inService returns the hosts that are not under maintenance.
func (c *Cluster) inService(hosts []string) []string {
	return slices.DeleteFunc(slices.Clone(hosts), func(host string) bool { return slices.Contains(c.Proxmox.Maintenance, host) })
}

// assign sets the Proxmox node of every machine, to one of those that a function allows it. A machine with a fixed one has no choice, and
// others give way to it; one that is allowed none keeps what it has, and is reported.
func (c *Cluster) assign(allowed func(*NodePool, *Node) (hosts []string, fixed bool)) {
	var controlPlanes []*assignment
	for p := range c.NodePools {
		pool := &c.NodePools[p]
		for n := range pool.Nodes {
			one := assignment{node: &pool.Nodes[n]}
			if one.hosts, one.fixed = allowed(pool, one.node); len(one.hosts) == 0 {
				continue
			}
			one.turn = n % len(one.hosts)
			if pool.Role == ControlPlane {
				controlPlanes = append(controlPlanes, &one)
			} else {
				one.node.Host = one.preferred()
			}
		}
	}
	spread(controlPlanes)
}

// assignment is a control plane that needs a host.
type assignment struct {
	node  *Node
	hosts []string // that it may run on
	turn  int      // index of the preferred one; the others follow, counted round
	fixed bool     // there is no choice
}

func (a *assignment) preferred() string { return a.hosts[a.turn] }

// candidates yields the hosts that the machine may run on, the preferred host first.
func (a *assignment) candidates(yield func(string) bool) {
	for i := range a.hosts {
		if !yield(a.hosts[(a.turn+i)%len(a.hosts)]) {
			return
		}
	}
}

// spread assigns hosts to control planes so that as many as possible have a host for themselves: first the fixed ones, then those
// whose preferred host is free, then the others. It finds a maximum bipartite matching with augmenting paths: if all candidates
// are taken, it tries to move a control plane from one of them.
func spread(controlPlanes []*assignment) {
	taken := map[string]*assignment{}
	var others, crowded []*assignment
	for _, fixed := range []bool{true, false} {
		for _, one := range controlPlanes {
			switch host := one.preferred(); {
			case one.fixed != fixed:
			case taken[host] == nil:
				taken[host] = one
			default:
				others = append(others, one)
			}
		}
	}
	for _, one := range others {
		if !one.take(taken, map[string]bool{}) {
			crowded = append(crowded, one)
		}
	}
	for host, one := range taken {
		one.node.Host = host
	}
	for _, one := range crowded {
		one.node.Host = one.preferred()
	}
}

// take assigns a free host, moving others if necessary, and reports whether it found one.
func (a *assignment) take(taken map[string]*assignment, asked map[string]bool) bool {
	for host := range a.candidates {
		if taken[host] == nil {
			taken[host] = a
			return true
		}
	}
	for host := range a.candidates {
		if asked[host] {
			continue
		}
		asked[host] = true
		if taken[host].take(taken, asked) {
			taken[host] = a
			return true
		}
	}
	return false
}

// placement checks that machines can leave the Proxmox nodes under maintenance, and that no two control planes are at home on one
// host, unless that is allowed.
func (c clusterCheck) placement() {
	c.maintenance()
	if c.Proxmox.AllowControlPlanesOnOneHost {
		return
	}
	first := map[string]Node{}
	var crowded, hosts []string
	for i, pool := range c.NodePools {
		if pool.Role != ControlPlane {
			continue
		}
		hosts = append(hosts, pool.Hosts...)
		for j, node := range pool.Nodes {
			other, taken := first[node.home]
			switch {
			case node.home == "":
			case !taken:
				first[node.home] = node
			case node.pinned && other.pinned:
				c.Found(fmt.Sprintf("nodePools[%d].nodes[%d].host", i, j),
					"pin it to another, leave it out, or declare the exception, proxmox.allowControlPlanesOnOneHost: true",
					"%s runs the control plane %s, and its failure would take both", node.home, other.Name)
			default:
				crowded = append(crowded, fmt.Sprintf("%s and %s on %s", other.Name, node.Name, node.home))
			}
		}
	}
	if len(crowded) > 0 {
		slices.Sort(hosts)
		hosts = slices.Compact(hosts)
		c.Found("nodePools", "add a host to proxmox.nodes, or declare the exception, proxmox.allowControlPlanesOnOneHost: true",
			"%d control planes cannot each have a host of %s for themselves, whose failure would take two: %s",
			len(c.ControlPlanes()), strings.Join(hosts, ", "), strings.Join(crowded, ", "))
	}
}

// maintenance checks that each machine on a Proxmox node under maintenance may run on another Proxmox node.
func (c clusterCheck) maintenance() {
	for i, host := range c.Proxmox.Maintenance {
		if host != "" && len(c.Proxmox.Nodes) > 0 && !slices.Contains(c.Proxmox.Nodes, host) {
			c.Found(ItemPath("proxmox.maintenance", i), OneOf(host, c.Proxmox.Nodes), "%s is not among proxmox.nodes", host)
		}
	}
	for _, pool := range c.NodePools {
		for _, node := range pool.Nodes {
			if len(pool.Hosts) > 0 && slices.Contains(c.Proxmox.Maintenance, node.Host) {
				c.Found("proxmox.maintenance", "leave a Proxmox node of the pool in service, or add one to its hosts",
					"leaves no Proxmox node for %s: the pool %s may run on %s only", node.Name, pool.Name, strings.Join(pool.Hosts, ", "))
				break
			}
		}
	}
}

// adviseMaintenance warns of control planes that share a host because of maintenance.
func (c clusterCheck) adviseMaintenance() {
	if c.Proxmox.AllowControlPlanesOnOneHost || len(c.Proxmox.Maintenance) == 0 {
		return
	}
	names := map[string][]string{}
	for _, node := range c.ControlPlanes() {
		names[node.Host] = append(names[node.Host], node.Name)
	}
	for _, host := range sorted(names) {
		if len(names[host]) > 1 {
			c.Found("proxmox.maintenance", "remove it as soon as the maintenance is over",
				"puts %s on %s, whose failure would take them all", strings.Join(names[host], " and "), host)
		}
	}
}
