package cluster_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters"
)

func TestSettings_HoldThePoolAndHowItIsAnnounced(t *testing.T) {
	values := clusters.Infra(t).Settings()
	assert.Equal(t, "l2", values["LB_ANNOUNCE"])
	assert.Equal(t, `[{"start":"10.25.11.100","stop":"10.25.11.150"}]`, values["LB_POOL_BLOCKS"])
	assert.NotContains(t, values, "BGP_ASN")

	c := clusters.Infra(t)
	c.Network.IPv6 = &cluster.IPv6{LoadBalancers: &cluster.IPv6LoadBalancers{
		Start: netip.MustParseAddr("fd25:11::100"), Stop: netip.MustParseAddr("fd25:11::150"),
	}}
	c.Network.LoadBalancers.Announce = cluster.AnnounceBGP
	c.Network.LoadBalancers.BGP = &cluster.BGP{
		ASN: 64512, Peers: []cluster.BGPPeer{{Address: netip.MustParseAddr("10.25.11.1"), ASN: 64513}},
	}
	values = c.Settings()
	assert.Equal(t, `[{"start":"10.25.11.100","stop":"10.25.11.150"},{"start":"fd25:11::100","stop":"fd25:11::150"}]`,
		values["LB_POOL_BLOCKS"])
	assert.Equal(t, "64512", values["BGP_ASN"])
	assert.Equal(t, `[{"name":"10.25.11.1","peerASN":64513,"peerAddress":"10.25.11.1","peerConfigRef":{"name":"infra"}}]`, values["BGP_PEERS"])
}

func TestSettings_HaveNoMeshAddressWithoutAMesh(t *testing.T) {
	c := clusters.Infra(t)
	assert.Equal(t, "10.25.11.100", c.Settings()["MESH_IP"])
	c.Network.LoadBalancers.Mesh = netip.Addr{}
	assert.NotContains(t, c.Settings(), "MESH_IP")
}

func TestSettings_HoldTheDisksOfAProviderAndTheNameOfAConsumersProvider(t *testing.T) {
	storage := func(c *cluster.Cluster) map[string]string {
		values := map[string]string{}
		for key, value := range c.Settings() {
			if strings.HasPrefix(key, "STORAGE_") {
				values[strings.TrimPrefix(key, "STORAGE_")] = value
			}
		}
		return values
	}
	const disk = `{"name":"/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi`
	provider := clusters.Infra(t, func(c *cluster.Cluster) {
		c.NodePools[1].DataDisks = []cluster.DataDisk{
			{Name: "scratch", Size: cluster.GiB, Use: cluster.DiskVolume},
			{Name: "osd-1", Size: 5 * cluster.GiB, Use: cluster.DiskOSD},
			{Name: "other", Size: cluster.GiB, Use: cluster.DiskRaw},
			{Name: "osd-2", Size: 5 * cluster.GiB, Use: cluster.DiskOSD},
		}
	})
	assert.Equal(t, map[string]string{
		"ROLE": "provider", "PROVIDER": "infra", "REPLICAS": "2", "REPLICAS_SAFE": "true", "MONITORS": "3", "MANAGERS": "2",
		"CONNECTION": "onepassword", "VAULT": "storage",
		"NODES": `[{"name":"infra-worker-1","devices":[` + disk + `2"},` + disk + `4"}]},` +
			`{"name":"infra-worker-2","devices":[` + disk + `2"},` + disk + `4"}]}]`,
	}, storage(provider))

	consumer := clusters.Load(t, clusters.Sample(t, "apps"))
	assert.Equal(t, map[string]string{"ROLE": "consumer", "PROVIDER": "infra", "CONNECTION": "onepassword", "VAULT": "storage"},
		storage(consumer))
	consumer.Storage.Vault = ""
	assert.Equal(t, map[string]string{"ROLE": "consumer", "PROVIDER": "infra", "CONNECTION": "git"}, storage(consumer))

	alone := clusters.Infra(t, func(c *cluster.Cluster) {
		c.Storage, c.NodePools[1].DataDisks = cluster.Storage{Role: cluster.StorageNone}, nil
	})
	assert.Equal(t, map[string]string{"ROLE": "none"}, storage(alone))
}

func TestSettings_HoldTheNodesWithTheVolumeOfTheLocalStorage(t *testing.T) {
	local := func(changes ...func(*cluster.Cluster)) string {
		values := clusters.Infra(t, changes...).Settings()
		return strings.Join([]string{values["LOCAL_STORAGE"], values["LOCAL_STORAGE_VOLUME"], values["LOCAL_STORAGE_NODES"]}, " ")
	}
	data := func(c *cluster.Cluster) {
		volume := cluster.DataDisk{Name: "data", Size: cluster.GiB, Use: cluster.DiskVolume}
		c.Storage.Local, c.NodePools[1].DataDisks = "data", append(c.NodePools[1].DataDisks, volume)
	}
	withoutCeph := func(c *cluster.Cluster) {
		c.Storage.Role, c.Storage.Vault, c.NodePools[1].DataDisks = cluster.StorageNone, "", c.NodePools[1].DataDisks[:0]
	}
	assert.Equal(t, "  ", local(), "nothing changes for a cluster without it")
	assert.Equal(t, `beside data ["infra-worker-1","infra-worker-2"]`, local(data))
	assert.Equal(t, `default data ["infra-worker-1","infra-worker-2"]`, local(withoutCeph, data))
	raw := func(c *cluster.Cluster) {
		c.NodePools[0].DataDisks = []cluster.DataDisk{{Name: "data", Size: cluster.GiB, Use: cluster.DiskRaw}}
	}
	assert.Equal(t, `default data ["infra-worker-1","infra-worker-2"]`, local(withoutCeph, data, raw), "a raw disk has no file system")
}

// A copy is on a worker of its own, and a monitor also on a control plane.
func TestSettings_CountCopiesAndMonitorsByTheMachines(t *testing.T) {
	for _, test := range []struct {
		controlPlanes, machines int
		taint, want             string
	}{
		{1, 1, "", "1 false 1 1"}, {1, 2, "", "2 true 3 2"}, {3, 1, "", "1 false 3 1"}, {3, 2, "", "2 true 3 2"}, {3, 4, "", "3 true 3 2"},
		{1, 2, "etcd:NoSchedule", "2 true 1 2"}, {1, 3, "etcd:NoSchedule", "3 true 3 2"},
	} {
		machines, want := test.machines, test.want
		values := clusters.Infra(t, func(c *cluster.Cluster) {
			c.NodePools[0].Nodes = c.NodePools[0].Nodes[:test.controlPlanes]
			if test.taint != "" {
				c.NodePools[0].Taints = map[string]string{"example.com/only": test.taint}
			}
			pool := &c.NodePools[1]
			for i := len(pool.Nodes); i < machines; i++ {
				pool.Nodes = append(pool.Nodes, cluster.Node{
					Name: fmt.Sprintf("more-%d", i), VMID: 2000 + i, MAC: cluster.MAC(fmt.Sprintf("BC:24:11:00:09:%02X", i)),
					Address: netip.MustParseAddr(fmt.Sprintf("10.25.11.%d", 40+i)), Host: "pve1",
				})
			}
			pool.Nodes, c.Storage.Replicas = pool.Nodes[:machines], nil
		}).Settings()
		assert.Equal(t, want, strings.Join([]string{values["STORAGE_REPLICAS"], values["STORAGE_REPLICAS_SAFE"], values["STORAGE_MONITORS"],
			values["STORAGE_MANAGERS"]}, " "), "%+v", test)
	}
}
