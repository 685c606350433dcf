package proxmox

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/vm"
)

const machinePath = "nodes/pve1/qemu/1111/"

func TestPower_StartGivesTheGuestTheConfiguredHardware(t *testing.T) {
	w := newWorld(t)
	w.create()
	hw := w.board.last(t).hw
	require.NotNil(t, hw.ISO)
	assert.Len(t, hw.ISO.Schematic, 64)
	hw.ISO.Schematic = "x"
	disk := hw.Disks["scsi0"]
	require.Equal(t, "uuid="+hw.UUID, strings.Split(w.get(machinePath + "config").(map[string]any)["smbios1"].(string), ",")[0])
	require.NotNil(t, hw.EFI)
	assert.Contains(t, w.get(machinePath + "config").(map[string]any)["efidisk0"], hw.EFI.Volume)
	assert.Equal(t, vm.Hardware{
		Host: "pve1", ID: 1111, Name: "infra-cp-1", Cores: 2, MemoryMiB: 2048, UEFI: true, Agent: true,
		UUID: hw.UUID, Q35: true, EFI: hw.EFI,
		NICs:      []vm.NIC{{MAC: "BC:24:11:00:01:0B", Bridge: "vmbr0"}},
		BootOrder: []string{"scsi0", "ide3"},
		Disks:     map[string]*vm.Disk{"scsi0": disk},
		ISO: &vm.Image{Name: "talos.iso", Drive: "ide3", Version: "v1.12.7", Schematic: "x", Platform: "nocloud",
			Extensions: []string{"siderolabs/qemu-guest-agent"}},
		CloudInit: &vm.CloudInit{
			Drive: "ide2", Search: []string{},
			Addresses: []netip.Prefix{netip.MustParsePrefix("10.25.11.11/24")},
			Gateways:  []netip.Addr{netip.MustParseAddr("10.25.11.1")},
			DNS:       []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")},
			Instance:  hw.CloudInit.Instance,
		},
	}, hw)
	assert.Equal(t, vm.Disk{Volume: "local-lvm:vm-1111-disk-0", Size: 20 << 30}, *disk)
}

func TestPower_ARebootTakesUpTheNewConfigurationAndKeepsTheDisk(t *testing.T) {
	w := newWorld(t)
	w.create()
	first := w.board.last(t)
	first.hw.Disks["scsi0"].Content = "installed"
	require.Equal(t, http.StatusOK, w.call(http.MethodPut, machinePath+"config",
		url.Values{"memory": {"4096"}, "balloon": {"0"}, "name": {"infra-cp-1"}}).code)
	assert.Equal(t, 1, w.board.count(), "a change alone restarts nothing")

	w.ok(http.MethodPost, machinePath+"status/reset", nil)
	assert.Equal(t, 2048, w.board.last(t).hw.MemoryMiB, "the reset button changes no hardware")

	w.reboot(machinePath)
	<-first.Done()
	assert.Equal(t, 3, w.board.count())
	assert.Equal(t, 4096, w.board.last(t).hw.MemoryMiB)
	assert.Equal(t, "installed", w.board.last(t).hw.Disks["scsi0"].Content)
	assert.Equal(t, "running", w.status())
}

func TestPower_TheTaskOfARebootEndsWhenTheVMHasStopped(t *testing.T) {
	w := newWorld(t)
	w.create()
	first := w.board.last(t)
	w.breaks(fault.ProxmoxTaskHangs, "qmstart", "")
	w.ok(http.MethodPost, machinePath+"status/reboot", nil)
	<-first.Done()
	assert.Equal(t, "stopped", w.status(), "the task has ended, and the VM is off")
	assert.Equal(t, "VM 1111 not running", w.call(http.MethodPost, machinePath+"status/reboot", nil).reason)
	w.faults.Clear()
	require.Eventually(t, func() bool { return w.status() == "running" }, time.Minute, time.Millisecond)
	assert.Equal(t, 2, w.board.count())

	w.board.last(t).deaf = true
	assert.Equal(t, "VM quit/powerdown failed - got timeout",
		w.do(http.MethodPost, machinePath+"status/reboot", url.Values{"timeout": {"1"}}))
	w.board.last(t).PowerOff()
	require.Eventually(t, func() bool { return w.status() == "stopped" }, time.Minute, time.Millisecond)
	assert.Equal(t, 2, w.board.count(), "the request for a reboot is gone")
}

func TestPower_StopAndShutdownEndTheGuest(t *testing.T) {
	w := newWorld(t)
	w.create()
	for _, action := range []string{"stop", "shutdown"} {
		w.ok(http.MethodPost, machinePath+"status/"+action, nil)
		assert.Equal(t, "stopped", w.status(), action)
		<-w.board.last(t).Done()
		w.ok(http.MethodPost, machinePath+"status/"+action, nil) // of a stopped VM: nothing to do
		w.ok(http.MethodPost, machinePath+"status/start", nil)
		assert.Equal(t, "running", w.status(), action)
	}
	assert.Equal(t, "VM 1111 already running", w.do(http.MethodPost, machinePath+"status/start", nil))
}

func TestPower_AGuestThatIgnoresShutdownIsTerminatedOnlyOnDemand(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.board.last(t).deaf = true
	assert.Equal(t, "VM quit/powerdown failed - got timeout",
		w.do(http.MethodPost, machinePath+"status/shutdown", url.Values{"timeout": {"1"}}))
	assert.Equal(t, "running", w.status())
	w.ok(http.MethodPost, machinePath+"status/shutdown", url.Values{"timeout": {"1"}, "forceStop": {"1"}})
	assert.Equal(t, "stopped", w.status())
}

func TestPower_AGuestThatEndsByItselfLeavesTheVMStopped(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.board.last(t).PowerOff()
	require.Eventually(t, func() bool { return w.status() == "stopped" }, time.Minute, time.Millisecond)
}

func TestPower_AFailedStartReportsTheReason(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.ok(http.MethodPost, machinePath+"status/stop", nil)
	for _, tc := range []struct {
		name     string
		set      url.Values
		exit     string
		and      func()
		restored url.Values
	}{
		{name: "bridge", set: url.Values{"net0": {"virtio=BC:24:11:00:01:0B,bridge=vmbr9"}}, exit: "start failed: QEMU exited with code 1",
			restored: url.Values{"net0": {"virtio=BC:24:11:00:01:0B,bridge=vmbr0"}}},
		{name: "cores", set: url.Values{"cores": {"64"}}, exit: "MAX 16 vcpus allowed per VM on this node", restored: url.Values{"cores": {"2"}}},
		{name: "image", and: func() {
			w.ok(http.MethodDelete, "nodes/pve1/storage/local/content/local:iso%2Ftalos.iso", nil)
		}, exit: "volume 'local:iso/talos.iso' does not exist"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, http.StatusOK, w.call(http.MethodPut, machinePath+"config", tc.set).code)
			if tc.and != nil {
				tc.and()
			}
			assert.Equal(t, tc.exit, w.do(http.MethodPost, machinePath+"status/start", nil))
			require.Equal(t, http.StatusOK, w.call(http.MethodPut, machinePath+"config", tc.restored).code)
		})
	}
	assert.Equal(t, 1, w.board.count())
}

func TestGuest_TheAgentAnswersOnlyWithItsChannel(t *testing.T) {
	w := newWorld(t)
	w.create()
	const path = machinePath + "agent/network-get-interfaces"
	got := w.get(path).(map[string]any)["result"].([]any)[0].(map[string]any)
	assert.Equal(t, "bc:24:11:00:01:0b", got["hardware-address"])
	assert.Equal(t, []any{map[string]any{"ip-address": "192.0.2.11", "ip-address-type": "ipv4", "prefix": 24.0}}, got["ip-addresses"])

	refused := func(reason string) {
		t.Helper()
		r := w.call(http.MethodGet, path, nil)
		assert.Equal(t, http.StatusInternalServerError, r.code)
		assert.Equal(t, reason, r.reason)
	}
	w.ok(http.MethodPost, machinePath+"status/stop", nil)
	refused("VM 1111 is not running")
	set := func(agent string) {
		t.Helper()
		require.Equal(t, http.StatusOK, w.call(http.MethodPut, machinePath+"config", url.Values{"agent": {agent}}).code)
	}
	set("enabled=0")
	w.ok(http.MethodPost, machinePath+"status/start", nil)
	refused("No QEMU guest agent configured")
	set("1")
	refused("No QEMU guest agent configured") // until the VM has been off
	w.reboot(machinePath)
	w.get(path)
	set("enabled=0")
	w.get(path) // the channel is there until then
}

func TestHardware_HasADefaultBootOrder(t *testing.T) {
	w := newWorld(t)
	w.download("pve1")
	form := recorded(t)
	form.Del("boot")
	form.Del("ide2")
	w.ok(http.MethodPost, "nodes/pve1/qemu", form)
	w.ok(http.MethodPost, machinePath+"status/start", nil)
	hw := w.board.last(t).hw
	assert.Equal(t, []string{"scsi0", "ide3", "net0"}, hw.BootOrder)
	assert.Nil(t, hw.CloudInit, "no drive, no data")
	assert.True(t, hw.Q35)
	assert.Regexp(t, `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, hw.UUID)
}

func TestHardware_AChangeOfTheCloudInitDriveIsAnotherInstance(t *testing.T) {
	w := newWorld(t)
	w.download("pve1")
	form := recorded(t)
	instances := map[string]bool{}
	w.ok(http.MethodPost, "nodes/pve1/qemu", form)
	for _, ip := range []string{"ip=10.25.11.11/24,gw=10.25.11.1", "ip=10.25.11.12/24,gw=10.25.11.1", "ip=10.25.11.11/24,gw=10.25.11.1"} {
		require.Equal(t, http.StatusOK, w.call(http.MethodPut, machinePath+"config", url.Values{"ipconfig0": {ip}}).code)
		w.ok(http.MethodPost, machinePath+"status/start", nil)
		instances[w.board.last(t).hw.CloudInit.Instance] = true
		w.ok(http.MethodPost, machinePath+"status/stop", nil)
	}
	assert.Len(t, instances, 2)
	assert.NotContains(t, instances, "")
}

func TestPower_AMediumThatIsNoImageDoesNotBoot(t *testing.T) {
	w := newWorld(t)
	text := newText(t, "no image at all")
	w.ok(http.MethodPost, "nodes/pve1/storage/local/download-url",
		url.Values{"content": {"iso"}, "filename": {"talos.iso"}, "url": {text + "/x.iso"}})
	w.ok(http.MethodPost, "nodes/pve1/qemu", recorded(t))
	w.ok(http.MethodPost, machinePath+"status/start", nil)
	assert.Nil(t, w.board.last(t).hw.ISO)
	assert.Equal(t, "running", w.status())
}

func TestCluster_WithoutFirmwareMachinesRunAndNothingBoots(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Firmware = nil })
	w.create()
	assert.Equal(t, "running", w.status())
	assert.True(t, strings.HasPrefix(w.call(http.MethodGet, machinePath+"agent/network-get-interfaces", nil).reason, "QEMU guest agent"))
	w.ok(http.MethodPost, machinePath+"status/stop", nil)
}
