package config

import (
	"maps"
	"slices"
)

// PoolNode is a machine with everything that it gets from its pool and its stack: nothing needs to be looked up.
type PoolNode struct {
	// Node is the machine's own part. Host is where it runs, pinned or by turn; Labels and Taints are the pool's with
	// the node's own over them, and Labels begins with the region and the zone, topology.kubernetes.io/region and zone.
	Node
	Pool NodePool // as declared, defaults filled in

	Datastore string     // Proxmox storage of its system disk
	Bridge    string     // Linux bridge or SDN VNet
	VLAN      int        // VLAN tag; 0 is untagged
	Tags      []string   // Proxmox.Tags, then the pool's, each once
	DataDisks []DataDisk // each with its datastore and use
}

// The labels that say where a node is, to Kubernetes's scheduler and to storage operators.
const (
	labelRegion = "topology.kubernetes.io/region"
	labelZone   = "topology.kubernetes.io/zone"
)

// Nodes returns every machine of the stack, control planes first, each role in the file's order.
func (s *Stack) Nodes() []PoolNode {
	return append(s.nodes(RoleControlPlane), s.nodes(RoleWorker)...)
}

// ControlPlanes returns the control planes in the file's order. The first bootstraps etcd.
func (s *Stack) ControlPlanes() []PoolNode { return s.nodes(RoleControlPlane) }

// Workers returns the workers in the file's order.
func (s *Stack) Workers() []PoolNode { return s.nodes(RoleWorker) }

func (s *Stack) nodes(role Role) []PoolNode {
	var nodes []PoolNode
	for _, pool := range s.NodePools {
		if pool.Role != role {
			continue
		}
		for _, node := range pool.Nodes {
			nodes = append(nodes, s.resolve(node, pool))
		}
	}
	return nodes
}

// resolve gives a machine what it gets from its pool and its stack.
func (s *Stack) resolve(node Node, pool NodePool) PoolNode {
	resolved := PoolNode{Node: node, Pool: pool, Datastore: pool.Datastore, Bridge: pool.Bridge, DataDisks: slices.Clone(pool.DataDisks)}
	if pool.VLAN != nil {
		resolved.VLAN = *pool.VLAN
	}
	resolved.Labels = map[string]string{}
	if s.Proxmox.Cluster != "" {
		resolved.Labels[labelRegion] = s.Proxmox.Cluster
	}
	if node.Host != "" {
		resolved.Labels[labelZone] = node.Host
	}
	maps.Copy(resolved.Labels, pool.Labels)
	maps.Copy(resolved.Labels, node.Labels)
	if len(pool.Taints)+len(node.Taints) > 0 {
		resolved.Taints = map[string]string{}
		maps.Copy(resolved.Taints, pool.Taints)
		maps.Copy(resolved.Taints, node.Taints)
	}
	for _, tag := range slices.Concat(s.Proxmox.Tags, pool.Tags) {
		if !slices.Contains(resolved.Tags, tag) {
			resolved.Tags = append(resolved.Tags, tag)
		}
	}
	return resolved
}
