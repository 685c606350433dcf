package reclaim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCheck_ComparesTheStorageOfTheImageWithItsDeclaration(t *testing.T) {
	for name, tc := range map[string]struct {
		storage string
		shared  bool
		one     bool // one host only
		says    string
	}{
		"local": {storage: "local"},
		"local, declared as shared": {storage: "local", shared: true,
			says: "proxmox.datastores.iso: local is local to each Proxmox node; leave proxmox.datastores.isoShared out"},
		"shared": {storage: "nfs-iso", shared: true},
		"shared, not declared": {storage: "nfs-iso",
			says: "proxmox.datastores.iso: nfs-iso is shared by the Proxmox nodes; write proxmox.datastores.isoShared: true"},
		"shared, one host": {storage: "nfs-iso", one: true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster
			cluster.ISO, cluster.ISOShared = tc.storage, tc.shared
			if tc.one {
				cluster.Hosts = cluster.Hosts[:1]
			}
			if _, err := check(t, emptyHost("8.4.1"), cluster); tc.says == "" {
				assert.NoError(t, err)
			} else {
				assert.EqualError(t, err, tc.says)
			}
		})
	}
}

func TestCheck_NamesANodeThatProxmoxVEDoesNotHaveAndThoseThatItHas(t *testing.T) {
	cluster := newCluster
	cluster.Hosts = append([]Host{{Named: Named{"proxmox.nodes[0]", "pve"}}}, newCluster.Hosts[1:]...)
	_, err := check(t, emptyHost("8.4.1"), cluster)
	assert.EqualError(t, err, "proxmox.nodes[0]: pve is no node of this Proxmox VE; it has: pve1, pve2, pve3")
}

// A node that no machine needs may be off: the cluster has no host for it then.
func TestCheck_NamesANodeThatIsOffline(t *testing.T) {
	cluster := newCluster
	cluster.Hosts = append([]Host{{Named: Named{"proxmox.nodes[2]", "pve3"}}}, newCluster.Hosts...)
	_, err := check(t, emptyHost("8.4.1"), cluster)
	assert.EqualError(t, err, "proxmox.nodes[2]: pve3 is offline; start it, or write it into proxmox.maintenance")
	_, err = check(t, emptyHost("8.4.1"), newCluster)
	assert.NoError(t, err)
}

// Proxmox VE knows the status of a node some seconds after the node has started.
func TestCheck_AsksANodeOfUnknownStatus(t *testing.T) {
	answers := emptyHost("8.4.1")
	answers["GET /api2/json/nodes"] = `[{"node":"pve1","status":"unknown"},{"node":"pve2","status":"online"}]`
	_, err := check(t, answers, newCluster)
	require.NoError(t, err)
	delete(answers, "GET /api2/json/nodes/pve1/storage")
	_, err = check(t, answers, newCluster)
	assert.EqualError(t, err, "proxmox.nodes[0]: pve1: proxmox: GET nodes/pve1/storage: 500 Internal Server Error")
}

func TestCheck_NamesEachStorageThatDoesNotFitAndThoseThatDo(t *testing.T) {
	for name, tc := range map[string]struct {
		storages string // of both hosts
		says     string
	}{
		"on ZFS": {localStorage + "," + zfsStorage,
			"proxmox.datastores.disks: local-lvm is no storage of Proxmox nodes pve1, pve2; with the content type images: local-zfs"},
		"none for disks": {localStorage,
			"proxmox.datastores.disks: local-lvm is no storage of Proxmox nodes pve1, pve2; " +
				"no storage there has the content type images: add the type to one in Proxmox VE, under Datacenter, Storage"},
		"no storage for images": {`{"storage":"local","content":"backup","enabled":1,"active":1},` + lvmStorage,
			"proxmox.datastores.iso: local has no content type iso on Proxmox nodes pve1, pve2; " +
				"add the type in Proxmox VE, under Datacenter, Storage"},
		"both names": {`{"storage":"files","content":"iso","enabled":1,"active":1},` + zfsStorage,
			"proxmox.datastores.iso: local is no storage of Proxmox nodes pve1, pve2; with the content type iso: files\n" +
				"proxmox.datastores.disks: local-lvm is no storage of Proxmox nodes pve1, pve2; with the content type images: local-zfs"},
		"disks on a storage of files": {localStorage + `,{"storage":"local-lvm","content":"rootdir","enabled":1,"active":1},` + zfsStorage,
			"proxmox.datastores.disks: local-lvm has no content type images on Proxmox nodes pve1, pve2; with the content type images: local-zfs"},
		"switched off": {localStorage + `,{"storage":"local-lvm","content":"images","enabled":0,"active":0},` + zfsStorage,
			"proxmox.datastores.disks: local-lvm is not enabled on Proxmox nodes pve1, pve2; " +
				"enable it in Proxmox VE, under Datacenter, Storage; with the content type images: local-zfs"},
		"out of reach": {localStorage + `,{"storage":"local-lvm","content":"images","enabled":1,"active":0}`,
			"proxmox.datastores.disks: local-lvm is not active on Proxmox nodes pve1, pve2; look why Proxmox VE does not reach it"},
		"a token that sees none": {"",
			"Proxmox VE lists no storage of Proxmox nodes pve1, pve2; " + giveRole},
	} {
		t.Run(name, func(t *testing.T) {
			answers := emptyHost("8.4.1")
			answers["GET /api2/json/nodes/pve1/storage"] = "[" + tc.storages + "]"
			answers["GET /api2/json/nodes/pve2/storage"] = "[" + tc.storages + "]"
			_, err := check(t, answers, newCluster)
			assert.EqualError(t, err, tc.says)
		})
	}
}

func TestCheck_NamesTheHostThatLacksAStorage(t *testing.T) {
	answers, cluster := emptyHost("8.4.1"), newCluster
	answers["GET /api2/json/nodes/pve2/storage"] = "[" + localStorage + "," + zfsStorage + "]"
	cluster.Hosts = []Host{newCluster.Hosts[0], newCluster.Hosts[1]}
	cluster.Hosts[0].Disks = []Named{{"proxmox.datastores.disks", "local-lvm"}, {"nodePools[1].dataDisks[0].datastore", "hdd"}}
	_, err := check(t, answers, cluster)
	assert.EqualError(t, err,
		"nodePools[1].dataDisks[0].datastore: hdd is no storage of Proxmox node pve1; with the content type images: local-lvm\n"+
			"proxmox.datastores.disks: local-lvm is no storage of Proxmox node pve2; with the content type images: local-zfs")
}

// A bridge that is declared in a file of its own is in no list of Proxmox VE, and works.
func TestCheck_WarnsOfABridgeThatProxmoxVEDoesNotList(t *testing.T) {
	cluster := newCluster
	cluster.Hosts = []Host{newCluster.Hosts[0], newCluster.Hosts[1]}
	cluster.Hosts[0].Bridges = []Named{{"proxmox.bridge", "vmbr0"}, {"nodePools[1].bridge", "vmbr7"}}
	warnings, err := check(t, emptyHost("8.4.1"), cluster)
	require.NoError(t, err)
	assert.Equal(t, []string{"nodePools[1].bridge: Proxmox VE does not list vmbr7 among the bridges of Proxmox node pve1, which are: vmbr0; " +
		"a VM does not start without its bridge"}, warnings)

	answers := emptyHost("8.4.1")
	answers["GET /api2/json/nodes/pve1/network"], answers["GET /api2/json/nodes/pve2/network"] = `[]`, `[]`
	warnings, err = check(t, answers, newCluster)
	require.NoError(t, err)
	assert.Equal(t, []string{"proxmox.bridge: Proxmox VE lists no bridge of Proxmox nodes pve1, pve2; vmbr0 does not exist, " +
		"or the token lacks SDN.Use"}, warnings)
}
