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
	var controlPlanes []*assignment
	for p := range c.NodePools {
		pool := &c.NodePools[p]
		for n := range pool.Nodes {
			node := &pool.Nodes[n]
			node.pinned = node.Host != ""
			one := assignment{node: node, hosts: pool.Hosts}
			switch {
			case node.pinned:
				one.hosts = []string{node.Host}
			case len(pool.Hosts) == 0:
				continue // no Proxmox nodes are declared, which is reported
			default:
				one.turn = n % len(pool.Hosts)
			}
			if pool.Role == ControlPlane {
				controlPlanes = append(controlPlanes, &one)
			} else {
				node.Host = one.preferred()
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

// spread assigns hosts to control planes so that as many as possible have a host for themselves: first the pinned ones, then those
// whose preferred host is free, then the others. It finds a maximum bipartite matching with augmenting paths: if all candidates
// are taken, it tries to move a control plane from one of them.
func spread(controlPlanes []*assignment) {
	taken := map[string]*assignment{}
	var others, crowded []*assignment
	for _, pinned := range []bool{true, false} {
		for _, one := range controlPlanes {
			switch host := one.preferred(); {
			case one.node.pinned != pinned:
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

// checkPlacement checks that no two control planes are on one host, unless that is allowed.
func (c *Cluster) checkPlacement(findings *Findings) {
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
			other, taken := first[node.Host]
			switch {
			case node.Host == "":
			case !taken:
				first[node.Host] = node
			case node.pinned && other.pinned:
				findings.Found(fmt.Sprintf("nodePools[%d].nodes[%d].host", i, j),
					"pin it to another, leave it out, or declare the exception, proxmox.allowControlPlanesOnOneHost: true",
					"%s runs the control plane %s, and its failure would take both", node.Host, other.Name)
			default:
				crowded = append(crowded, fmt.Sprintf("%s and %s on %s", other.Name, node.Name, node.Host))
			}
		}
	}
	if len(crowded) > 0 {
		slices.Sort(hosts)
		hosts = slices.Compact(hosts)
		findings.Found("nodePools", "add a host to proxmox.nodes, or declare the exception, proxmox.allowControlPlanesOnOneHost: true",
			"%d control planes cannot each have a host of %s for themselves, whose failure would take two: %s",
			len(c.ControlPlanes()), strings.Join(hosts, ", "), strings.Join(crowded, ", "))
	}
}
