package reclaim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLook_IsTheNodeAndTheHardwareOfTheVM(t *testing.T) {
	answers := aVM("running", "[]")
	answers["GET /api2/json/nodes/pve2/qemu/1111/config"] = `{"name":"infra-cp-1","parent":"before-upgrade",
		"memory":"8192","cores":4,"scsihw":"virtio-scsi-single",
		"net0":"virtio=BC:24:11:00:01:11,bridge=vmbr1,firewall=0,tag=20","net1":"virtio=BC:24:11:00:01:12,bridge=vmbr0",
		"scsi0":"local-lvm:vm-1111-disk-0,iothread=1,size=64G","scsi1":"local-lvm:vm-1111-disk-1,size=1T","scsi2":"none,media=cdrom",
		"scsi3":"local-lvm:vm-1111-disk-3,size=1500M","efidisk0":"local-lvm:vm-1111-disk-2,size=4M","ide2":"local-lvm:cloudinit,media=cdrom",
		"ide0":"local-lvm:vm-1111-cloudinit","ide1":"nas:1111/vm-1111-cloudinit.qcow2,size=4M",
		"sata0":"local-lvm:vm-1111-disk-4,size=10G","scsi4":"nas:9999/vm-9999-pvc-1.raw,size=5G",
		"scsi5":"linstor:pm-1a2b_1111,size=5G","scsi6":"local:9000/base-9000-disk-0.qcow2/1111/vm-1111-disk-6.qcow2,size=5G",
		"scsi7":"/dev/disk/by-path/pci-0000:00:17.0-ata-1,size=10G"}`
	api, changes := proxmoxAPI(t, answers)
	seen, err := Look(t.Context(), api, wanted.ID)
	require.NoError(t, err)
	assert.Equal(t, Seen{"pve2", map[string]string{
		"memory": "8192", "cores": "4", "scsihw": "virtio-scsi-single", "net0": "vmbr1, VLAN 20", "net1": "vmbr0", "sata0": "10",
		"scsi0": "64", "scsi1": "1024", "scsi3": "1500M", "scsi4": "5", "scsi5": "5", "scsi6": "5", "scsi7": "10",
		"sata0 on": "local-lvm", "scsi0 on": "local-lvm", "scsi1 on": "local-lvm", "scsi3 on": "local-lvm", "scsi4 on": "nas",
		"scsi5 on": "linstor", "scsi6 on": "local",
	}, []string{"scsi4"}, "before-upgrade"}, seen)
	seen, err = Look(t.Context(), api, wanted.ID+1)
	require.NoError(t, err)
	assert.Zero(t, seen)
	assert.Empty(t, *changes)
}
