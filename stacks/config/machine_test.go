package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
)

func TestMachine_HasEverythingFromItsPoolAndItsCluster(t *testing.T) {
	c := loadValid(t, "everything")
	machines := c.Machines()
	require.Equal(t, []string{"cp-1", "cp-2", "cp-3", "storage-1", "general-1", "general-2", "general-3"}, namesOf(machines))

	pinned, placed, storage := machines[0], machines[1], machines[3]
	assert.Equal(t, "pve1", pinned.Host)
	assert.Equal(t, "pve2", placed.Host)
	assert.Equal(t, []any{"nvme", "vmbr2", 12}, []any{pinned.Datastore, pinned.Bridge, pinned.VLAN})
	assert.Equal(t, []string{"lab", "team-a", "etcd"}, pinned.Tags)
	assert.Equal(t, map[string]string{
		"topology.kubernetes.io/region": "rack-7", "topology.kubernetes.io/zone": "rack-1",
	}, pinned.Labels, "a declared label stays")
	assert.Equal(t, cluster.MAC("BC:24:11:00:07:0A"), pinned.MAC, "as Proxmox returns it")

	assert.Equal(t, []any{"ceph.rbd", "vmbr1", 12}, []any{storage.Datastore, storage.Bridge, storage.VLAN})
	assert.Equal(t, []cluster.DataDisk{
		{Name: "osd-1", Size: cluster.TiB, Datastore: "hdd", Use: cluster.DiskOSD},
		{Name: "Scratch", Size: cluster.GiB, Datastore: "ceph.rbd", Use: cluster.DiskVolume},
	}, storage.DataDisks)
	assert.Equal(t, map[string]string{
		"topology.kubernetes.io/region": "cellar", "topology.kubernetes.io/zone": "pve1", "example.com/empty": "", "example.com/tier": "fast",
	}, storage.Labels)
	assert.Equal(t, map[string]string{"example.com/storage": "only:NoExecute", "example.com/gpu": "NoSchedule"}, storage.Taints)
	assert.Equal(t, "fd25:11::21", storage.Address6.String())
	assert.JSONEq(t, `{"machine":{"sysctls":{"vm.nr_hugepages":"1024"}}}`, storage.Patches[0].String())
}

func TestMachine_SharesNothingWithItsPool(t *testing.T) {
	c := loadValid(t, "everything")
	c.WorkerMachines()[0].Labels["x"] = "y"
	c.WorkerMachines()[0].DataDisks[0].Name = "other"
	assert.NotContains(t, c.WorkerMachines()[0].Labels, "x")
	assert.Equal(t, "osd-1", c.WorkerMachines()[0].DataDisks[0].Name)
}

func TestMachines_AreControlPlanesFirstInTheFilesOrder(t *testing.T) {
	c := cluster.Cluster{NodePools: []cluster.NodePool{
		{Name: "a", Role: cluster.Worker, Nodes: []cluster.Node{{Name: "w2"}, {Name: "w1"}}},
		{Name: "b", Role: cluster.ControlPlane, Cores: 4, Nodes: []cluster.Node{{Name: "c2"}}},
		{Name: "c", Role: cluster.ControlPlane, Nodes: []cluster.Node{{Name: "c1"}}},
	}}
	assert.Equal(t, []string{"c2", "c1", "w2", "w1"}, namesOf(c.Machines()))
	assert.Equal(t, []string{"c2", "c1"}, namesOf(c.ControlPlanes()))
	assert.Equal(t, []string{"w2", "w1"}, namesOf(c.WorkerMachines()))
	assert.Equal(t, 4, c.Machines()[0].Cores)
}

func namesOf(machines []cluster.Machine) []string {
	var names []string
	for _, machine := range machines {
		names = append(names, machine.Name)
	}
	return names
}

func TestDefaults_FollowOtherKeys(t *testing.T) {
	c := loadValid(t, "minimal")
	assert.Equal(t, "10.25.11.1", c.Network.Nameservers[0].String())
	assert.Equal(t, "kubernetes/clusters/home", c.GitOps.Path)
	var keys []string
	for _, set := range c.CRDs.Installed() {
		keys = append(keys, set.Key)
		assert.Contains(t, set.Source.URL, "https://")
	}
	want := []string{"gatewayAPI", "certManager", "externalSecrets", "victoriaMetrics", "prometheusOperator", "cloudnativePG", "rook",
		"cephCSI"}
	assert.Equal(t, want, keys)
	nothing := loadValid(t, "nothing-optional")
	assert.Empty(t, nothing.CRDs.Installed())
}

func TestVLAN_OfAPoolMayBeUntaggedThoughTheClusterIsNot(t *testing.T) {
	for given, want := range map[*int]int{nil: 11, new(int): 0} {
		pool := cluster.NodePool{Role: cluster.Worker, VLAN: given, Nodes: []cluster.Node{{Name: "a"}}}
		c := cluster.Cluster{Proxmox: cluster.Proxmox{VLAN: 11}, NodePools: []cluster.NodePool{pool}}
		var findings cluster.Findings
		c.Complete(&findings)
		assert.Equal(t, want, c.Machines()[0].VLAN)
	}
}
