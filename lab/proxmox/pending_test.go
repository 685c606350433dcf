package proxmox

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func (w *world) put(form url.Values) {
	w.t.Helper()
	r := w.call(http.MethodPut, machinePath+"config", form)
	require.Equal(w.t, http.StatusOK, r.code, "%s %v", r.reason, r.errors)
}

// config returns an option as it will be, and as the VM runs with it; "" if it is not set.
func (w *world) config(key string) (next, current any) {
	w.t.Helper()
	read := func(query string) any {
		if v, ok := w.get(machinePath + "config" + query).(map[string]any)[key]; ok {
			return v
		}
		return ""
	}
	return read(""), read("?current=1")
}

// waits returns the options that wait, with the value that they get; "(deleted)" if they are deleted.
func (w *world) waits() map[string]any {
	w.t.Helper()
	out := map[string]any{}
	for _, item := range w.get(machinePath + "pending").([]any) {
		i := item.(map[string]any)
		if v, ok := i["pending"]; ok {
			out[i["key"].(string)] = v
		}
		if i["delete"] == 1.0 {
			out[i["key"].(string)] = "(deleted)"
		}
	}
	return out
}

func TestPending_CPUAndMemoryWaitUntilTheVMHasBeenOff(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.put(url.Values{"memory": {"4096"}, "cores": {"4"}, "name": {"renamed"}, "ipconfig0": {"ip=10.25.11.12/24"}, "delete": {"vga"}, "description": {"x"}})
	next, current := w.config("memory")
	assert.Equal(t, "4096", next)
	assert.Equal(t, "2048", current)
	assert.Equal(t, map[string]any{"memory": "4096", "cores": "4", "vga": "(deleted)"}, w.waits(), "a name and cloud-init mean nothing to QEMU")
	status := w.get(machinePath + "status/current").(map[string]any)
	assert.Equal(t, 2.0, status["cpus"])
	assert.Equal(t, 2048.0*(1<<20), status["maxmem"])
	assert.Equal(t, "renamed", status["name"])

	w.ok(http.MethodPost, machinePath+"status/reset", nil)
	assert.NotEmpty(t, w.waits(), "the reset button restarts nothing of QEMU")
	w.reboot(machinePath)
	assert.Empty(t, w.waits())
	hw := w.board.last(t).hw
	assert.Equal(t, 4, hw.Cores)
	assert.Equal(t, 4096, hw.MemoryMiB)
	_, current = w.config("memory")
	assert.Equal(t, "4096", current)

	w.put(url.Values{"cores": {"2"}})
	w.put(url.Values{"cores": {"4"}})
	assert.Empty(t, w.waits(), "what is as it was does not wait")
	w.put(url.Values{"cores": {"2"}, "vga": {"std"}})
	w.put(url.Values{"revert": {"cores,vga"}})
	assert.Empty(t, w.waits())
	w.put(url.Values{"cores": {"2"}})
	w.board.last(t).PowerOff()
	require.Eventually(t, func() bool { return len(w.waits()) == 0 }, 5e9, 1e6, "the guest's own end is enough")
}

func TestPending_DisksArePluggedInAndOutWhileTheGuestRuns(t *testing.T) {
	w := newWorld(t)
	w.create()
	guest := w.board.last(t)
	w.put(url.Values{"scsi1": {"file=local-lvm:10,format=raw,serial=data"}})
	assert.Equal(t, []string{"scsi0", "scsi1"}, guest.disks())
	w.put(url.Values{"scsi1": {"file=local-lvm:vm-1111-disk-2,serial=data,cache=none"}})
	assert.Contains(t, w.waits(), "scsi1", "QEMU takes the cache mode at its start")
	w.put(url.Values{"delete": {"scsi1"}})
	assert.Equal(t, []string{"scsi0"}, guest.disks())
	assert.Empty(t, w.waits())
	unused, _ := w.config("unused0")
	assert.Equal(t, "local-lvm:vm-1111-disk-2", unused)

	w.put(url.Values{"sata0": {"file=local-lvm:10,format=raw"}, "delete": {"efidisk0"}})
	assert.Contains(t, w.waits(), "sata0")
	assert.Equal(t, "(deleted)", w.waits()["efidisk0"])
	assert.Equal(t, []string{"scsi0"}, guest.disks())
	r := w.call(http.MethodPut, machinePath+"config", url.Values{"scsi0": {"none,media=cdrom"}})
	assert.Equal(t, http.StatusBadRequest, r.code)
	assert.Equal(t, "hotplug problem - unable to change media type\n", r.errors["scsi0"])
	w.put(url.Values{"revert": {"scsi0"}})

	w.put(url.Values{"hotplug": {"network"}})
	w.put(url.Values{"scsi2": {"file=local-lvm:10,format=raw"}})
	assert.Contains(t, w.waits(), "scsi2")
	w.put(url.Values{"delete": {"scsi2"}})
	assert.NotContains(t, w.waits(), "scsi2")
	unused, _ = w.config("unused1")
	assert.NotEmpty(t, unused, "the disk that was never plugged in is kept")

	w.reboot(machinePath)
	assert.Contains(t, w.board.last(t).hw.Disks, "sata0")
	assert.Empty(t, w.waits())
}

func TestPending_ACardOnAMissingBridgeIsRefusedAndTheVMRunsOn(t *testing.T) {
	w := newWorld(t)
	w.create()
	r := w.call(http.MethodPut, machinePath+"config", url.Values{"net0": {"virtio=BC:24:11:00:01:0B,bridge=vmbr9"}})
	assert.Equal(t, http.StatusBadRequest, r.code)
	assert.Equal(t, map[string]string{"net0": "hotplug problem - bridge 'vmbr9' does not exist\n"}, r.errors)
	assert.Contains(t, w.waits(), "net0")
	assert.Equal(t, "running", w.status())
	w.put(url.Values{"net0": {"virtio=BC:24:11:00:01:0B,bridge=vmbr0,tag=20"}})
	assert.Empty(t, w.waits(), "a bridge or tag changes at once")
}

func TestUpdate_RefusesABalloonThatIsLargerThanTheMemory(t *testing.T) {
	w := newWorld(t)
	w.create()
	r := w.call(http.MethodPut, machinePath+"config", url.Values{"balloon": {"4096"}})
	assert.Equal(t, "balloon value too large (must be smaller than assigned memory)", r.reason)
	w.put(url.Values{"balloon": {"4096"}, "memory": {"4096"}})
}
