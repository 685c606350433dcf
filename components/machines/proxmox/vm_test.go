package proxmox

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
)

func TestMake_StartsMachinesFromTheImageOfTheirHost(t *testing.T) {
	r := up(t)
	require.Len(t, r.OfType(typeVM), len(declared(t).Machines()))
	for _, node := range declared(t).Machines() {
		vm := r.Resource(t, "infra-"+node.Name+"-vm")
		image := r.Resource(t, "infra-"+node.Host+"-iso")
		assert.Contains(t, vm.PropertyDependencies["cdrom"], image.URN)
		assert.Equal(t, node.Host, vm.Input("nodeName"))
		assert.EqualValues(t, node.VMID, vm.Input("vmId"))
		assert.Equal(t, string(node.MAC), vm.Input("networkDevices[0].macAddress"))
		assert.Equal(t, node.Address.String()+"/24", vm.Input("initialization.ipConfigs[0].ipv4.address"))
		assert.Equal(t, true, vm.Input("stopOnDestroy"))
		assert.Equal(t, true, vm.RPC.GetDeleteBeforeReplace(), "the old VM occupies the id and the addresses")
	}
}

func TestMake_HasNoPropertyThatTheProviderChangesOnEveryRun(t *testing.T) {
	for _, vm := range up(t).OfType(typeVM) {
		assert.Contains(t, vm.IgnoreChanges, "disks[0].speed", vm.Name)
		for _, stated := range []string{"cdrom.fileId", "cdrom.interface"} {
			assert.NotNil(t, vm.Input(stated), "%s: %s", vm.Name, stated)
		}
		assert.Nil(t, vm.Input("cdrom.enabled"), "the provider does not read it back, and warns that it is deprecated")
		assert.Nil(t, vm.Input("disks[0].fileId"), "importing a disk needs SSH to the host")
	}
}

// An existing VM with its CD drive at ide3 would be rebooted.
func TestMake_LeavesTheCDDriveOfAnExistingVMWhereItIs(t *testing.T) {
	for _, vm := range up(t).OfType(typeVM) {
		assert.Subset(t, vm.IgnoreChanges, []string{"cdrom.interface", "bootOrders"}, vm.Name)
		assert.Equal(t, "ide0", vm.Input("cdrom.interface"), "ide1 and ide3 of q35 boot since qemu-server 8.0.7, ide2 is the cloud-init drive")
		assert.Equal(t, []any{"scsi0", "ide0"}, vm.Input("bootOrders"))
	}
}

// For another datastore, the provider would make a new TPM. Proxmox VE refuses what it sends for another gateway on the cloud-init drive.
func TestMake_LeavesWhatOnlyANewVMNeeds(t *testing.T) {
	r := up(t, func(c *cluster.Cluster) { c.Talos.DiskEncryption = cluster.DiskEncryptionTPM })
	for _, vm := range r.OfType(typeVM) {
		assert.Subset(t, vm.IgnoreChanges, []string{"efiDisk", "tpmState", "initialization"}, vm.Name)
		assert.Equal(t, "local-lvm", vm.Input("tpmState.datastoreId"), "a new VM gets it")
		assert.NotEmpty(t, vm.Input("initialization.dns.servers"))
		assert.Equal(t, "10.25.11.1", vm.Input("initialization.ipConfigs[0].ipv4.gateway"))
	}
}

func TestMake_SortsTagsAsProxmoxDoes(t *testing.T) {
	vm := up(t).Resource(t, "infra-infra-cp-1-vm")
	assert.Equal(t, []any{"controlplane", "homelab", "infra", "slipway", "talos"}, vm.Input("tags"))
}

func TestMake_OpensTheAgentChannelExactlyWithItsExtension(t *testing.T) {
	for extensions, enabled := range map[string]bool{
		"siderolabs/qemu-guest-agent":                        true,
		"siderolabs/iscsi-tools siderolabs/util-linux-tools": false,
		"": false,
	} {
		r := up(t, func(c *cluster.Cluster) { c.Talos.Extensions = strings.Fields(extensions) })
		for _, vm := range r.OfType(typeVM) {
			assert.Equal(t, enabled, vm.Input("agent.enabled"), extensions)
		}
	}
}

func TestMake_UsesEachPoolsHardwareSettings(t *testing.T) {
	r := up(t, func(c *cluster.Cluster) {
		vlan, own := 30, 40
		c.NodePools[0].VLAN = &vlan
		workers(c).Datastore, workers(c).Bridge, workers(c).VLAN, workers(c).Tags = "ceph", "vmbr1", &own, []string{"zz", "gpu"}
	})
	own, other := r.Resource(t, "infra-infra-worker-1-vm"), r.Resource(t, "infra-infra-cp-1-vm")
	for path, want := range map[string][2]any{
		"disks[0].datastoreId":       {"ceph", "local-lvm"},
		"efiDisk.datastoreId":        {"ceph", "local-lvm"},
		"initialization.datastoreId": {"ceph", "local-lvm"},
		"networkDevices[0].bridge":   {"vmbr1", "vmbr0"},
		"networkDevices[0].vlanId":   {40.0, 30.0},
		"tags": {
			[]any{"gpu", "homelab", "infra", "slipway", "talos", "worker", "zz"},
			[]any{"controlplane", "homelab", "infra", "slipway", "talos"},
		},
	} {
		assert.EqualValues(t, want[0], own.Input(path), path)
		assert.EqualValues(t, want[1], other.Input(path), path)
	}
	assert.Nil(t, own.Input("tpmState"))
}

func TestMake_MigratesAMachineInsteadOfReplacingIt(t *testing.T) {
	for _, vm := range up(t).OfType(typeVM) {
		assert.Equal(t, true, vm.Input("migrate"), vm.Name)
		assert.Contains(t, vm.RPC.GetHooks().GetBeforeUpdate(), strings.TrimSuffix(vm.Name, "-vm")+"-move")
	}
}
