package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/siderolabs/gen/xslices"
)

// Machine is a node with all values from its pool and its cluster.
type Machine struct {
	// Node is the declared node, with four changes: Host is the Proxmox node that the machine runs on, whether it is pinned or not;
	// Labels and Taints include the pool's, which the node's own override; Labels includes the region and the zone;
	// DiskEncryption is that of Talos unless the node declares its own.
	Node

	Path      string // key of the node in the stack file, such as nodePools[0].nodes[1]
	Role      Role
	Cores     int
	Memory    Quantity
	Disk      Quantity // size of the system disk
	Datastore string   // Proxmox storage of the system disk
	Bridge    string   // Linux bridge or SDN VNet
	VLAN      int      // VLAN tag; 0 means untagged
	Tags      []string // tags of Proxmox.Tags and of the pool, each once
	DataDisks []DataDisk
}

// Labels for the location of a node, which the scheduler and storage operators read.
const (
	labelRegion = "topology.kubernetes.io/region"
	labelZone   = "topology.kubernetes.io/zone"
)

// Machines returns every machine of the cluster, control planes first, each role in the file's order.
func (c *Cluster) Machines() []Machine {
	return append(c.machines(ControlPlane), c.machines(Worker)...)
}

// namesOf returns the names of machines.
func namesOf(machines []Machine) []string {
	return xslices.Map(machines, func(machine Machine) string { return machine.Name })
}

// ControlPlanes returns the control planes in the file's order. The first one bootstraps etcd.
func (c *Cluster) ControlPlanes() []Machine { return c.machines(ControlPlane) }

// WorkerMachines returns the workers in the file's order.
func (c *Cluster) WorkerMachines() []Machine { return c.machines(Worker) }

// FirstMachines returns the machines that are created before the readiness gate: all machines, or only the control planes if the
// workers join after it.
func (c *Cluster) FirstMachines() []Machine {
	if c.Workers.Join == JoinAfterGate {
		return c.ControlPlanes()
	}
	return c.Machines()
}

// JoiningMachines returns the workers that are created after the readiness gate.
func (c *Cluster) JoiningMachines() []Machine {
	if c.Workers.Join == JoinAfterGate {
		return c.WorkerMachines()
	}
	return nil
}

func (c *Cluster) machines(role Role) []Machine {
	var machines []Machine
	for i, pool := range c.NodePools {
		if pool.Role != role {
			continue
		}
		for j, node := range pool.Nodes {
			machine := c.machine(node, pool)
			machine.Path = fmt.Sprintf("nodePools[%d].nodes[%d]", i, j)
			machines = append(machines, machine)
		}
	}
	return machines
}

func (c *Cluster) machine(node Node, pool NodePool) Machine {
	m := Machine{
		Node: node, Role: pool.Role, Cores: pool.Cores, Memory: pool.Memory, Disk: pool.Disk,
		Datastore: pool.Datastore, Bridge: pool.Bridge, DataDisks: slices.Clone(pool.DataDisks),
	}
	if pool.VLAN != nil {
		m.VLAN = *pool.VLAN
	}
	m.DiskEncryption = cmp.Or(node.DiskEncryption, c.Talos.DiskEncryption)
	m.Labels = map[string]string{}
	if c.Proxmox.Cluster != "" {
		m.Labels[labelRegion] = c.Proxmox.Cluster
	}
	if node.Host != "" {
		m.Labels[labelZone] = node.Host
	}
	maps.Copy(m.Labels, pool.Labels)
	maps.Copy(m.Labels, node.Labels)
	m.Taints = nil
	if len(pool.Taints)+len(node.Taints) > 0 {
		m.Taints = map[string]string{}
		maps.Copy(m.Taints, pool.Taints)
		maps.Copy(m.Taints, node.Taints)
	}
	for _, tag := range slices.Concat(c.Proxmox.Tags, pool.Tags) {
		if !slices.Contains(m.Tags, tag) {
			m.Tags = append(m.Tags, tag)
		}
	}
	return m
}
