package proxmox

import (
	"slices"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/machines/proxmox/reclaim"
)

// neededHosts returns the Proxmox nodes that a cluster's machines run on, each with the storages and bridges that these machines use there.
// A Proxmox node under maintenance has no machine. Machines that are left out stay as they are, and their Proxmox node may be down.
func neededHosts(c *cluster.Cluster) (hosts []reclaim.Host) {
	for i, pool := range c.NodePools {
		disks, bridge := poolDisks(c, i), poolBridge(c, i)
		for _, node := range pool.Nodes {
			if c.Lifecycle.Skip.Has(node.Name) {
				continue
			}
			at := slices.IndexFunc(hosts, func(host reclaim.Host) bool { return host.Name == node.Host })
			if at < 0 {
				at = len(hosts)
				hosts = append(hosts, reclaim.Host{Named: hostNamed(c, node.Host)})
			}
			for _, disk := range disks {
				hosts[at].Disks = addNamed(hosts[at].Disks, disk)
			}
			hosts[at].Bridges = addNamed(hosts[at].Bridges, bridge)
		}
	}
	return hosts
}

func addNamed(all []reclaim.Named, one reclaim.Named) []reclaim.Named {
	if slices.Contains(all, one) {
		return all
	}
	return append(all, one)
}

func hostNamed(c *cluster.Cluster, name string) reclaim.Named {
	return reclaim.Named{Path: cluster.ItemPath("proxmox.nodes", slices.Index(c.Proxmox.Nodes, name)), Name: name}
}

// poolDisks returns the storages of a pool's disks, each at the key that decides: a pool may follow the cluster, and a data disk its pool.
func poolDisks(c *cluster.Cluster, i int) []reclaim.Named {
	pool, path := c.NodePools[i], cluster.ItemPath("nodePools", i)
	system := reclaim.Named{Path: "proxmox.datastores.disks", Name: c.Proxmox.Datastores.Disks}
	if pool.Datastore != system.Name {
		system = reclaim.Named{Path: path + ".datastore", Name: pool.Datastore}
	}
	disks := []reclaim.Named{system}
	for j, disk := range pool.DataDisks {
		if disk.Datastore != system.Name {
			disks = append(disks, reclaim.Named{Path: cluster.ItemPath(path+".dataDisks", j) + ".datastore", Name: disk.Datastore})
		}
	}
	return disks
}

func poolBridge(c *cluster.Cluster, i int) reclaim.Named {
	if bridge := c.NodePools[i].Bridge; bridge != c.Proxmox.Bridge {
		return reclaim.Named{Path: cluster.ItemPath("nodePools", i) + ".bridge", Name: bridge}
	}
	return reclaim.Named{Path: "proxmox.bridge", Name: c.Proxmox.Bridge}
}
