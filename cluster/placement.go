package cluster

import (
	"fmt"
	"slices"
	"strings"
)

// place gives every machine that is not pinned a Proxmox node. A machine's turn is its position in its pool, so that
// what is pinned, or added at the end, moves no other: the first machine of a pool prefers the pool's first host, the
// second its second, and so on round. A control plane moves on from the host it prefers if another one is there, and
// makes way if it can go elsewhere and another one cannot, so that no two share a host as long as there is a way.
func (c *Cluster) place() {
	var controlPlanes []*seat
	for p := range c.NodePools {
		pool := &c.NodePools[p]
		for n := range pool.Nodes {
			node := &pool.Nodes[n]
			node.pinned = node.Host != ""
			candidates := []string{node.Host}
			if !node.pinned {
				if len(pool.Hosts) == 0 {
					continue // an error that is reported, or a stack without Proxmox nodes
				}
				turn := n % len(pool.Hosts)
				candidates = slices.Concat(pool.Hosts[turn:], pool.Hosts[:turn])
			}
			if pool.Role == ControlPlane {
				controlPlanes = append(controlPlanes, &seat{node: node, candidates: candidates})
			} else {
				node.Host = candidates[0]
			}
		}
	}
	spread(controlPlanes)
}

// seat is a control plane that a host is looked for.
type seat struct {
	node       *Node
	candidates []string // hosts it may run on, the preferred one first
}

// spread seats control planes so that as many as possible have a host for themselves: those that are pinned, then
// those that get the host they prefer, then the others. It is the usual search for a maximum matching: whoever finds
// every host taken asks those who have them to move.
func spread(seats []*seat) {
	taken := map[string]*seat{}
	var others, crowded []*seat
	for _, pinned := range []bool{true, false} {
		for _, one := range seats {
			switch host := one.candidates[0]; {
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
		one.node.Host = one.candidates[0]
	}
}

// take gives the seat a host, and reports whether there was one.
func (s *seat) take(taken map[string]*seat, asked map[string]bool) bool {
	for _, host := range s.candidates {
		if taken[host] == nil {
			taken[host] = s
			return true
		}
	}
	for _, host := range s.candidates {
		if asked[host] {
			continue
		}
		asked[host] = true
		if taken[host].take(taken, asked) {
			taken[host] = s
			return true
		}
	}
	return false
}

// validateSpread checks that no two control planes are on one host, unless that is declared.
func (c *checker) placement() {
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
				c.Found(fmt.Sprintf("nodePools[%d].nodes[%d].host", i, j),
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
		c.Found("nodePools", "add a host to proxmox.nodes, or declare the exception, proxmox.allowControlPlanesOnOneHost: true",
			"%d control planes cannot each have a host of %s for themselves, whose failure would take two: %s",
			len(c.ControlPlanes()), strings.Join(hosts, ", "), strings.Join(crowded, ", "))
	}
}
