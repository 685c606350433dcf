package cluster

import (
	"slices"
	"strings"
)

// LocalProvisioner is the provisioner of the tree's StorageClass for volumes on the nodes' own disks (local-path-provisioner). It is no CSI
// driver, so no node registers it.
const LocalProvisioner = "rancher.io/local-path"

// localStoragePath is the key of the user volume for such volumes.
const localStoragePath = "storage.local"

// localMachines returns the machines with the user volume of storage.local.
func (c *Cluster) localMachines() []Machine {
	return slices.DeleteFunc(c.Machines(), func(m Machine) bool {
		return !slices.ContainsFunc(m.DataDisks, func(disk DataDisk) bool { return disk.Use == DiskVolume && disk.Name == c.Storage.Local })
	})
}

// localStorage checks that something makes the class and its volumes. Without a user volume, Talos has no file system at the path: the
// volumes would be on the system disk, or fail.
func (c clusterCheck) localStorage() {
	switch local := c.Storage.Local; {
	case local == "":
	case !c.GitOps.Enabled:
		c.Found(localStoragePath, "remove it, or set gitops.enabled: true", "comes with the tree, which nothing applies")
	case len(c.localMachines()) == 0:
		remedy := "add {name: " + local + ", size: 50GiB, use: volume} to the dataDisks of a pool in nodePools"
		switch volumes, others := c.dataDiskNames(); {
		case Suggest(local, volumes) != "":
			remedy = "did you mean " + Suggest(local, volumes) + "?"
		case len(volumes) > 0:
			remedy = "write " + strings.Join(slices.Compact(slices.Sorted(slices.Values(volumes))), " or ")
		case slices.Contains(others, local):
			remedy = "name another disk, which you add to dataDisks with use: volume"
		}
		c.Found(localStoragePath, remedy, "%s is the user volume of no machine", local)
	}
}

// adviseLocalMachines warns of volumes that no pod reaches, because none may run where they are.
func (c clusterCheck) adviseLocalMachines() {
	pods, local := c.PodMachines(), c.localMachines()
	if c.Storage.Local == "" || len(local) == 0 || slices.ContainsFunc(local, func(m Machine) bool {
		return slices.ContainsFunc(pods, func(other Machine) bool { return other.Name == m.Name })
	}) {
		return
	}
	c.Found(localStoragePath, "give a pool that takes pods the user volume, or set kubernetes.allowSchedulingOnControlPlanes",
		"%s is a user volume only of machines that take no ordinary pods", c.Storage.Local)
}

// dataDiskNames returns the names of all user volumes, and those of the other data disks.
func (c *Cluster) dataDiskNames() (volumes, others []string) {
	for _, pool := range c.NodePools {
		for _, disk := range pool.DataDisks {
			if disk.Use == DiskVolume {
				volumes = append(volumes, disk.Name)
			} else {
				others = append(others, disk.Name)
			}
		}
	}
	return volumes, others
}

// localSettings are the cluster settings of the volumes on the nodes' own disks.
var localSettings = []Setting{
	{"LOCAL_STORAGE", localStoragePath, "whether the StorageClass of the nodes' own disks is the default one: `default`, with `role: none`, " +
		"or `beside` Ceph's; only with `storage.local`",
		func(c *Cluster) string {
			switch {
			case c.Storage.Local == "":
				return ""
			case c.Storage.Role == StorageNone:
				return "default"
			}
			return "beside"
		}},
	{"LOCAL_STORAGE_VOLUME", localStoragePath, "the user volume, which is mounted at `/var/mnt/NAME`; only with `storage.local`",
		func(c *Cluster) string { return c.Storage.Local }},
	{"LOCAL_STORAGE_NODES", localStoragePath, "the nodes with this user volume, as a list in JSON: values of " +
		"`allowedTopologies` of a StorageClass; only with `storage.local`",
		only(func(c *Cluster) bool { return c.Storage.Local != "" }, func(c *Cluster) string { return asJSON(namesOf(c.localMachines())) })},
}
