package config

import (
	"fmt"
	"slices"
	"strings"
)

// validateSpread checks that no two control planes are on one host, unless that is declared.
func (v *validator) validateSpread() {
	if v.Proxmox.AllowControlPlanesOnOneHost {
		return
	}
	first := map[string]Node{}
	var crowded, hosts []string
	for i, pool := range v.NodePools {
		if pool.Role != RoleControlPlane {
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
				v.found(fmt.Sprintf("nodePools[%d].nodes[%d].host", i, j),
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
		v.found("nodePools", "add a host to proxmox.nodes, or declare the exception, proxmox.allowControlPlanesOnOneHost: true",
			"%d control planes cannot each have a host of %s for themselves, whose failure would take two: %s",
			len(v.ControlPlanes()), strings.Join(hosts, ", "), strings.Join(crowded, ", "))
	}
}
