package proxmox

import (
	"net/http"
	"net/netip"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pools are the storages and bridges of a stack with different pools.
func pools(c *Config) {
	c.Storages = append(DefaultStorages(), Storage{Name: "fast", Type: "zfspool", Content: []string{"images"}})
	c.Nodes[0].Bridges = []string{"vmbr0", "vmbr1"}
}

func TestHardware_DisksLieOnTheirOwnStoragesAndReachTheGuest(t *testing.T) {
	w := newWorld(t, pools)
	w.download("pve1")
	form := with(t, "scsi1", "fast:50,format=raw,size=53687091200,iothread=1,ssd=1,discard=on,serial=data")
	form.Set("scsi2", "local-lvm:8,format=raw,size=8589934592")
	w.ok(http.MethodPost, "nodes/pve1/qemu", form)
	config := w.get(machinePath + "config").(map[string]any)
	assert.Equal(t, "fast:vm-1111-disk-0,discard=on,iothread=1,serial=data,size=50G,ssd=1", config["scsi1"])
	assert.Equal(t, "local-lvm:vm-1111-disk-1,size=8G", config["scsi2"], "numbers count per storage")
	w.ok(http.MethodPost, machinePath+"status/start", nil)
	disks := w.board.last(t).hw.Disks
	assert.Equal(t, int64(50<<30), disks["scsi1"].Size)
	assert.Equal(t, "data", disks["scsi1"].Serial)
	assert.Equal(t, int64(8<<30), disks["scsi2"].Size)
	assert.Len(t, disks, 3, "the EFI disk is no disk of the guest")
}

func TestDestroy_KeepsDisksOutsideTheConfigurationUnlessRequested(t *testing.T) {
	for asked, left := range map[string][]string{"": {"pve1/fast:vm-1111-disk-0"}, "1": nil} {
		w := newWorld(t, pools)
		form := with(t, "scsi1", "fast:50")
		form.Del("ide3")
		w.ok(http.MethodPost, "nodes/pve1/qemu", form)
		// The disk is in the configuration neither as drive nor as unused disk, as if somebody had edited the file.
		require.Equal(t, http.StatusOK, w.call(http.MethodPut, machinePath+"config", url.Values{"delete": {"scsi1"}}).code)
		require.Contains(t, w.get(machinePath+"config"), "unused0")
		w.c.mu.Lock()
		delete(w.c.machines[1111].config, "unused0")
		w.c.mu.Unlock()
		path := machinePath[:len(machinePath)-1] + "?purge=1"
		if asked != "" {
			path += "&destroy-unreferenced-disks=" + asked
		}
		w.ok(http.MethodDelete, path, nil)
		assert.Equal(t, left, w.c.Volumes())
	}
}

func TestHardware_ACardReadsBackWithItsBridgeAndVLAN(t *testing.T) {
	w := newWorld(t, pools)
	form := with(t, "net0", "model=virtio,macaddr=BC:24:11:00:01:15,bridge=vmbr1,tag=20,firewall=0")
	form.Set("net1", "model=virtio,macaddr=BC:24:11:00:01:16,bridge=vmbr0")
	form.Del("ide3")
	w.ok(http.MethodPost, "nodes/pve1/qemu", form)
	config := w.get(machinePath + "config").(map[string]any)
	assert.Equal(t, "virtio=BC:24:11:00:01:15,bridge=vmbr1,firewall=0,tag=20", config["net0"])
	w.ok(http.MethodPost, machinePath+"status/start", nil)
	nics := w.board.last(t).hw.NICs
	require.Len(t, nics, 2)
	assert.Equal(t, 20, nics[0].VLAN)
	assert.Equal(t, "vmbr1", nics[0].Bridge)
	assert.Zero(t, nics[1].VLAN)

	elsewhere := with(t, "net0", "model=virtio,macaddr=BC:24:11:00:01:17,bridge=vmbr1")
	elsewhere.Set("vmid", "1112")
	elsewhere.Del("ide3")
	w.ok(http.MethodPost, "nodes/pve2/qemu", elsewhere)
	assert.Equal(t, "start failed: QEMU exited with code 1", w.do(http.MethodPost, "nodes/pve2/qemu/1112/status/start", nil),
		"the other host has no such bridge")
}

func TestHardware_CloudInitCarriesBothFamilies(t *testing.T) {
	w := newWorld(t)
	form := with(t, "ipconfig0", "gw=10.25.11.1,gw6=fd00:25:11::1,ip=10.25.11.11/24,ip6=fd00:25:11::11/64")
	form.Set("nameserver", "10.25.11.1 fd00:25:11::53")
	form.Del("ide3")
	w.ok(http.MethodPost, "nodes/pve1/qemu", form)
	w.ok(http.MethodPost, machinePath+"status/start", nil)
	ci := w.board.last(t).hw.CloudInit
	assert.Equal(t, []netip.Prefix{netip.MustParsePrefix("10.25.11.11/24"), netip.MustParsePrefix("fd00:25:11::11/64")}, ci.Addresses)
	assert.Equal(t, []netip.Addr{netip.MustParseAddr("10.25.11.1"), netip.MustParseAddr("fd00:25:11::1")}, ci.Gateways)
	assert.Equal(t, []netip.Addr{netip.MustParseAddr("10.25.11.1"), netip.MustParseAddr("fd00:25:11::53")}, ci.DNS)
	assert.Equal(t, "gw=10.25.11.1,gw6=fd00:25:11::1,ip=10.25.11.11/24,ip6=fd00:25:11::11/64",
		w.get(machinePath + "config").(map[string]any)["ipconfig0"])
}

func TestHardware_ATPMIsADeviceAndNoDisk(t *testing.T) {
	w := newWorld(t)
	form := with(t, "tpmstate0", "local-lvm:1,version=v2.0")
	form.Del("ide3")
	w.ok(http.MethodPost, "nodes/pve1/qemu", form)
	assert.Contains(t, w.get(machinePath + "config").(map[string]any)["tpmstate0"], "size=4M,version=v2.0")
	w.ok(http.MethodPost, machinePath+"status/start", nil)
	first := w.board.last(t).hw
	require.NotNil(t, first.TPM)
	assert.NotContains(t, first.Disks, "tpmstate0")

	first.TPM.Content, first.EFI.Content = "keys", "variables"
	w.reboot(machinePath)
	assert.Same(t, first.TPM, w.board.last(t).hw.TPM)
	change := url.Values{"tpmstate0": {"local-lvm:1,version=v2.0"}, "efidisk0": {"local-lvm:1,efitype=4m"}}
	require.Equal(t, http.StatusOK, w.call(http.MethodPut, machinePath+"config", change).code)
	assert.Equal(t, "keys", w.board.last(t).hw.TPM.Content, "a new one waits until the VM is off")
	w.reboot(machinePath)
	assert.Nil(t, w.board.last(t).hw.TPM.Content)
	assert.Nil(t, w.board.last(t).hw.EFI.Content)
	config := w.get(machinePath + "config").(map[string]any)
	assert.ElementsMatch(t, []any{first.TPM.Volume, first.EFI.Volume}, []any{config["unused0"], config["unused1"]})
}

// written is what a guest wrote on a disk, outside of memory.
type written struct{ removed bool }

func (w *written) Close() error {
	w.removed = true
	return nil
}

func TestDestroy_RemovesWhatAGuestWroteOnItsDisks(t *testing.T) {
	w := newWorld(t)
	w.create()
	hw := w.board.last(t).hw
	disk, variables := &written{}, &written{}
	hw.Disks["scsi0"].Content, hw.EFI.Content = disk, variables
	w.ok(http.MethodPost, machinePath+"status/stop", nil)
	assert.False(t, disk.removed || variables.removed, "a power cycle keeps it")
	w.ok(http.MethodDelete, machinePath[:len(machinePath)-1]+"?purge=1", nil)
	assert.True(t, disk.removed && variables.removed)
}
