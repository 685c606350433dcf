package proxmox

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/machines/proxmox/reclaim"
)

func hostsOf(c *cluster.Cluster) (names []string) {
	for _, host := range neededHosts(c) {
		names = append(names, host.Name)
	}
	return names
}

func TestNeededHosts_HaveWhatTheirMachinesUseAtTheKeysThatDecide(t *testing.T) {
	c := declared(t, func(c *cluster.Cluster) {
		c.Proxmox.Datastores.Disks, c.Proxmox.Bridge = "ceph", "vmbr1"
		c.NodePools[0].Datastore, c.NodePools[0].Bridge = "", ""
		workers(c).Datastore, workers(c).Bridge = "nvme", "vmbr2"
		workers(c).DataDisks = []cluster.DataDisk{{Name: "a", Size: 10 * cluster.GiB}, {Name: "b", Size: 10 * cluster.GiB, Datastore: "hdd"}}
		workers(c).Nodes[0].Host = "pve2"
	})
	for _, host := range neededHosts(c) {
		if host.Name != "pve2" {
			continue
		}
		assert.Equal(t, reclaim.Host{
			Named: reclaim.Named{Path: "proxmox.nodes[1]", Name: "pve2"},
			Disks: []reclaim.Named{
				{Path: "proxmox.datastores.disks", Name: "ceph"}, {Path: "nodePools[1].datastore", Name: "nvme"},
				{Path: "nodePools[1].dataDisks[1].datastore", Name: "hdd"},
			},
			Bridges: []reclaim.Named{{Path: "proxmox.bridge", Name: "vmbr1"}, {Path: "nodePools[1].bridge", Name: "vmbr2"}},
		}, host)
	}
	assert.ElementsMatch(t, []string{"pve1", "pve2", "pve3"}, hostsOf(c))
}

func TestNeededHosts_LeaveOutThoseThatNoMachineNeeds(t *testing.T) {
	c := declared(t, func(c *cluster.Cluster) { c.Proxmox.Maintenance = []string{"pve3"} })
	assert.ElementsMatch(t, []string{"pve1", "pve2"}, hostsOf(c), "a Proxmox node under maintenance")

	c = declared(t)
	var left cluster.SkippedNodes
	for _, node := range c.Machines() {
		if node.Host == "pve3" {
			left = append(left, cluster.SkippedNode{Name: node.Name})
		}
	}
	assert.NotEmpty(t, left)
	c.Lifecycle.Skip = left
	assert.ElementsMatch(t, []string{"pve1", "pve2"}, hostsOf(c), "the Proxmox node of machines that are left out")
}
