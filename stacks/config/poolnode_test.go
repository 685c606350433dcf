package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPoolNode_HasEverythingFromItsPoolAndItsStack(t *testing.T) {
	stack, err := loadFixture("everything")
	require.NoError(t, err)
	nodes := stack.Nodes()
	require.Equal(t, []string{"cp-1", "cp-2", "cp-3", "storage-1", "general-1", "general-2", "general-3"}, namesOf(nodes))

	pinned, placed, storage := nodes[0], nodes[1], nodes[3]
	assert.Equal(t, "pve1", pinned.Host)
	assert.Equal(t, "pve2", placed.Host)
	assert.Equal(t, []any{"nvme", "vmbr2", 12}, []any{pinned.Datastore, pinned.Bridge, pinned.VLAN})
	assert.Equal(t, []string{"lab", "team-a", "etcd"}, pinned.Tags)
	assert.Equal(t, map[string]string{labelRegion: "rack-7", labelZone: "rack-1"}, pinned.Labels, "a declared label stays")

	assert.Equal(t, []any{"ceph.rbd", "vmbr1", 12}, []any{storage.Datastore, storage.Bridge, storage.VLAN})
	assert.Equal(t, []DataDisk{
		{Name: "osd-1", Size: TiB, Datastore: "hdd", Use: DiskRaw},
		{Name: "Scratch", Size: GiB, Datastore: "ceph.rbd", Use: DiskVolume},
	}, storage.DataDisks)
	assert.Equal(t, map[string]string{
		labelRegion: "cellar", labelZone: "pve1", "example.com/empty": "", "example.com/tier": "fast",
	}, storage.Labels)
	assert.Equal(t, map[string]string{"example.com/storage": "only:NoExecute", "example.com/gpu": "NoSchedule"}, storage.Taints)
	assert.Equal(t, "fd25:11::21", storage.Address6.String())
	assert.JSONEq(t, `{"machine":{"sysctls":{"vm.nr_hugepages":"1024"}}}`, storage.Patches[0].String())
}

func TestPoolNode_IsUntaggedIfItsPoolSaysSo(t *testing.T) {
	for given, want := range map[*int]int{nil: 11, new(int): 0} {
		stack := Stack{Proxmox: Proxmox{VLAN: 11}, NodePools: []NodePool{{Role: RoleWorker, VLAN: given, Nodes: machines("a")}}}
		stack.applyDefaults()
		assert.Equal(t, want, stack.Nodes()[0].VLAN)
	}
}

func TestPoolNode_SharesNothingWithItsPool(t *testing.T) {
	stack, err := loadFixture("everything")
	require.NoError(t, err)
	stack.Workers()[0].Labels["x"] = "y"
	stack.Workers()[0].DataDisks[0].Name = "other"
	assert.NotContains(t, stack.Workers()[0].Labels, "x")
	assert.Equal(t, "osd-1", stack.Workers()[0].DataDisks[0].Name)
}

func TestCRDs_ListWhatIsNotSkipped(t *testing.T) {
	stack, err := loadFixture("minimal")
	require.NoError(t, err)
	var keys []string
	for _, one := range stack.CRDs.Sources() {
		keys = append(keys, one.Set.Key)
		assert.Equal(t, one.Set.URL(one.Source.Version), one.Source.URL)
	}
	assert.Equal(t, []string{"gatewayAPI", "certManager", "externalSecrets", "victoriaMetrics", "prometheusOperator", "cloudnativePG"}, keys)

	stack, err = loadFixture("nothing-optional")
	require.NoError(t, err)
	assert.Empty(t, stack.CRDs.Sources())
}

func TestSwitch_TellsUnsetFromOff(t *testing.T) {
	var zero Switch
	assert.False(t, zero.On())
	assert.Equal(t, []string{"", "false", "true"}, []string{zero.String(), SwitchOff.String(), SwitchOn.String()})
	var hubble Hubble
	require.NoError(t, decodeInto(t, &hubble, `{"enabled": false}`))
	assert.Equal(t, Hubble{Enabled: SwitchOff}, hubble)
	assert.EqualError(t, decodeInto(t, &hubble, `{"relay": "yes"}`), "at.relay: yes is text and must be true or false; write one of the two, without quotes")
}

func TestText_KeepsItsLines(t *testing.T) {
	var lldpd LLDPD
	require.NoError(t, decodeInto(t, &lldpd, `{"config": "a\n b\n"}`))
	assert.Equal(t, Text("a\n b\n"), lldpd.Config)
	assert.EqualError(t, decodeInto(t, &lldpd, `{"config": " \n"}`), "at.config: is empty; give it a value, or remove the key")
	assert.EqualError(t, decodeInto(t, &lldpd, `{"config": 1}`), "at.config: 1 is a number and must be text; write it as a block, after a |")
}
