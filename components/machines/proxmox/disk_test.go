package proxmox

import (
	"cmp"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/machines/proxmox/vmchange"
)

func TestRefuseDisks_NamesWhatProxmoxDoesNotDoAndWhatTheProviderWouldTakeOut(t *testing.T) {
	node := func(disk cluster.Quantity, data ...cluster.Quantity) cluster.Machine {
		c := declared(t, func(c *cluster.Cluster) {
			workers(c).Disk, workers(c).DataDisks, c.Storage = disk*cluster.GiB, nil, cluster.Storage{Role: cluster.StorageNone}
			for i, size := range data {
				workers(c).DataDisks = append(workers(c).DataDisks, cluster.DataDisk{Name: fmt.Sprintf("data-%d", i), Size: size * cluster.GiB})
			}
		})
		return c.WorkerMachines()[0]
	}
	stored := func(sizes map[string]float64) map[string]any {
		var list []any
		for name, size := range sizes {
			list = append(list, map[string]any{"interface": name, "size": size})
		}
		return map[string]any{"disks": list}
	}
	was := stored(map[string]float64{"scsi0": 40, "scsi1": 50})
	require.NoError(t, refuseDisks(node(40, 50), was))
	require.NoError(t, refuseDisks(node(60, 80, 10), was))
	require.NoError(t, refuseDisks(node(40), nil), "a VM that is not in the state yet")
	require.EqualError(t, refuseDisks(node(30, 20), was),
		"nodePools[1].disk: 30GiB is smaller than the disk scsi0 of infra-worker-1, and a disk only grows; write 40GiB, "+
			"or raise the node's generation, which replaces the machine\n"+
			"nodePools[1].dataDisks[0].size: 20GiB is smaller than the disk scsi1 of infra-worker-1, and a disk only grows; write 50GiB, "+
			"or raise the node's generation, which replaces the machine")
	require.EqualError(t, refuseDisks(node(40), was),
		"nodePools[1].dataDisks: infra-worker-1 has a disk scsi1 of 50GiB, which is not declared; declare it, or detach it in Proxmox VE "+
			"and run pulumi refresh, or raise the node's generation, which replaces the machine")
	require.ErrorContains(t, refuseDisks(node(40), stored(map[string]float64{"virtio0": 5})), "has a disk virtio0 of 5GiB")
}

func TestDisk_DeclaresExactlyThePropertiesWhoseChangesAreCompared(t *testing.T) {
	declared := reflect.ValueOf(disk(1, "local-lvm", 20, true))
	var properties []string
	for i := range declared.NumField() {
		if !declared.Field(i).IsZero() {
			properties = append(properties, declared.Type().Field(i).Tag.Get("pulumi"))
		}
	}
	assert.ElementsMatch(t, vmchange.DiskProperties, properties)
}

func TestDisks_HaveAThreadOnlyWithAControllerOfTheirOwn(t *testing.T) {
	for controller, thread := range map[cluster.SCSIController]bool{"": true, cluster.SCSISingle: true, cluster.SCSIShared: false} {
		r := up(t, func(c *cluster.Cluster) {
			if controller != "" {
				c.Proxmox.SCSIController = controller
			}
		})
		made := r.OfType(typeVM)
		require.NotEmpty(t, made)
		for _, vm := range made {
			assert.Equal(t, string(cmp.Or(controller, cluster.SCSISingle)), vm.Input("scsiHardware"))
			assert.Equal(t, thread, vm.Input("disks[0].iothread"))
		}
	}
}
