package proxmox

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/fault"
)

// breaks switches a fault on.
func (w *world) breaks(kind fault.Kind, target, detail string) {
	w.t.Helper()
	require.NoError(w.t, w.faults.On(fault.Fault{Kind: kind, Target: target, Detail: detail}))
}

func TestFault_AnErrorAnswersTheRequestsItIsMeantFor(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.breaks(fault.ProxmoxError, "GET /nodes/pve1/qemu/1111/status", "500 got no worker upid - start worker failed")
	r := w.call(http.MethodGet, machinePath+"status/current", nil)
	assert.Equal(t, http.StatusInternalServerError, r.code)
	assert.Equal(t, "got no worker upid - start worker failed", r.reason)
	w.get(machinePath + "config")

	w.faults.Clear()
	assert.Equal(t, "running", w.status())
}

// pveproxy answers with its own status and without a body for a node that it cannot reach.
func TestFault_AnErrorIsByDefaultThatOfAProxyWithoutItsHost(t *testing.T) {
	w := newWorld(t)
	w.breaks(fault.ProxmoxError, "*", "")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.srv.URL+"/api2/json/nodes", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "PVEAPIToken="+admin)
	res, err := w.srv.Client().Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	assert.Equal(t, "595 No route to host", res.Status)
	assert.Zero(t, res.ContentLength)
}

func TestFault_AProxmoxNodeThatIsGoneKeepsItsVMsInTheListAndAnswersNothing(t *testing.T) {
	w := newWorld(t)
	w.create()
	of := func(path, key, value string) map[string]any {
		for _, one := range w.get(path).([]any) {
			if entry := one.(map[string]any); entry[key] == value {
				return entry
			}
		}
		return nil
	}
	w.breaks(fault.ProxmoxNodeGone, "pve1", "")
	for _, path := range []string{machinePath + "config", machinePath + "status/current", "nodes/pve1/storage"} {
		r := w.call(http.MethodGet, path, nil)
		assert.Equal(t, 595, r.code, path)
		assert.Equal(t, "No route to host", r.reason, path)
	}
	assert.Equal(t, 595, w.call(http.MethodDelete, machinePath, nil).code)
	w.get("nodes/pve2/storage")
	assert.Equal(t, "offline", of("nodes", "node", "pve1")["status"])
	assert.Equal(t, "online", of("nodes", "node", "pve2")["status"])
	assert.Equal(t, map[string]any{
		"id": "qemu/1111", "type": "qemu", "vmid": 1111.0, "node": "pve1", "status": "unknown", "tags": "infra;talos",
	}, of("cluster/resources", "type", "qemu"))
	lost := of("cluster/resources?type=storage", "id", "storage/pve1/local-lvm")
	assert.Equal(t, "unknown", lost["status"])
	assert.NotContains(t, lost, "maxdisk")
	assert.Equal(t, "available", of("cluster/resources?type=storage", "id", "storage/pve2/local-lvm")["status"])

	require.Eventually(t, func() bool { return w.c.VMs()[0].Status == "stopped" }, 10*time.Second, time.Millisecond, "its VMs end")
	w.faults.Clear()
	assert.Equal(t, "stopped", w.status())
	assert.Equal(t, "online", of("nodes", "node", "pve1")["status"])
}

func TestFault_AProxmoxNodeThatIsForgottenLeavesNeitherVMsNorVolumes(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.breaks(fault.ProxmoxNodeGone, "pve1", "")
	w.breaks(fault.ProxmoxNodeGone, "pve1", fault.Forgotten)
	require.Eventually(t, func() bool { return len(w.c.VMs()) == 0 }, 10*time.Second, time.Millisecond)
	r := w.call(http.MethodGet, machinePath+"config", nil)
	assert.Equal(t, http.StatusInternalServerError, r.code)
	assert.Contains(t, r.reason, "hostname lookup 'pve1' failed")
	for _, list := range []string{"nodes", "cluster/resources"} {
		for _, one := range w.get(list).([]any) {
			assert.NotEqual(t, "pve1", one.(map[string]any)["node"], list)
		}
	}
	w.download("pve2")
	values := recorded(t)
	w.ok(http.MethodPost, "nodes/pve2/qemu", values)
}

func TestFault_AMissingPrivilegeIsWordedAsProxmoxDoes(t *testing.T) {
	w := newWorld(t)
	w.download("pve1")
	w.breaks(fault.ProxmoxPermission, "VM.Allocate", "")
	r := w.call(http.MethodPost, "nodes/pve1/qemu", recorded(t))
	assert.Equal(t, http.StatusForbidden, r.code)
	assert.Equal(t, "Permission check failed (/vms/1111, VM.Allocate)", r.reason)
	assert.Empty(t, w.c.VMs())

	w.breaks(fault.ProxmoxPermission, "VM.Audit", "")
	assert.Empty(t, w.get("cluster/resources?type=vm"), "what a token may not see is not listed")

	w.faults.Clear()
	w.ok(http.MethodPost, "nodes/pve1/qemu", recorded(t))
}

func TestFault_AHangingTaskRunsUntilTheFaultIsOffAndThenDoesItsWork(t *testing.T) {
	w := newWorld(t)
	w.download("pve1")
	w.breaks(fault.ProxmoxTaskHangs, "qmcreate", "")
	upid := w.call(http.MethodPost, "nodes/pve1/qemu", recorded(t)).data.(string)
	other := w.call(http.MethodPost, "nodes/pve1/qemu", with(t, "vmid", "1112")).data.(string)
	status := func() any {
		return w.get("nodes/pve1/tasks/" + url.PathEscape(upid) + "/status").(map[string]any)["status"]
	}
	assert.Equal(t, "running", status())

	require.Equal(t, http.StatusOK, w.call(http.MethodDelete, "nodes/pve1/tasks/"+url.PathEscape(other), nil).code)
	assert.Equal(t, "interrupted by signal", w.exit(other), "a task that hangs can be stopped")
	assert.Equal(t, "running", status())

	w.faults.Clear()
	assert.Equal(t, "OK", w.exit(upid))
	require.Len(t, w.c.VMs(), 1)
}

func TestFault_AFullDatastoreFailsTheTaskInTheStoragesOwnWords(t *testing.T) {
	for _, tc := range []struct{ kind, exit string }{
		{"lvmthin", "unable to create VM 1111 - lvcreate 'pve/vm-1111-cloudinit' error:   Cannot create new thin volume, free space in thin pool pve/data reached threshold."},
		{"zfspool", "unable to create VM 1111 - zfs error: cannot create 'local-lvm/vm-1111-cloudinit': out of space"},
		{"rbd", "unable to create VM 1111 - rbd create 'vm-1111-cloudinit' error: rbd: create error: (28) No space left on device"},
		{"dir", "unable to create VM 1111 - unable to create image: No space left on device"},
	} {
		w := newWorld(t, func(c *Config) {
			c.Storages = DefaultStorages()
			c.Storages[1].Type = tc.kind
		})
		w.download("pve1")
		before := w.c.Volumes()
		w.breaks(fault.DatastoreFull, "local-lvm", "")
		assert.Zero(t, w.get("nodes/pve1/storage/local-lvm/status").(map[string]any)["avail"])
		assert.Equal(t, tc.exit, w.do(http.MethodPost, "nodes/pve1/qemu", recorded(t)))
		assert.Empty(t, w.c.VMs())
		assert.Equal(t, before, w.c.Volumes(), "nothing is left behind")
		w.faults.Clear()
		w.ok(http.MethodPost, "nodes/pve1/qemu", recorded(t))
	}
}

func TestFault_AFullDatastoreTakesNoImage(t *testing.T) {
	w := newWorld(t)
	w.breaks(fault.DatastoreFull, "local", "")
	exit := w.do(http.MethodPost, "nodes/pve1/storage/local/download-url",
		url.Values{"content": {"iso"}, "filename": {"talos.iso"}, "url": {w.iso}})
	assert.Contains(t, exit, "failed: exit code 3")
	w.faults.Clear()
	w.download("pve1")
}

func TestFault_AWrongMACIsInTheGuestAndInTheConfiguration(t *testing.T) {
	w := newWorld(t)
	declared := parseNIC(recorded(t).Get("net0")).mac
	w.breaks(fault.VMWrongMAC, "infra-cp-1", "")
	w.create()
	read := func() string { return parseNIC(w.get(machinePath + "config").(map[string]any)["net0"].(string)).mac }
	wrong := w.board.last(t).hw.NICs[0].MAC
	assert.NotEqual(t, declared, wrong)
	assert.Equal(t, wrong, read())
	w.reboot(machinePath)
	assert.Equal(t, wrong, w.board.last(t).hw.NICs[0].MAC, "it stays the same one")

	w.faults.Clear()
	assert.Equal(t, wrong, read(), "nothing fixes a configuration but an edit")
	require.Equal(t, http.StatusOK, w.call(http.MethodPut, machinePath+"config", url.Values{"net0": {recorded(t).Get("net0")}}).code)
	w.reboot(machinePath)
	assert.Equal(t, declared, w.board.last(t).hw.NICs[0].MAC)

	w.breaks(fault.VMWrongMAC, "infra-cp-1", "02:00:00:00:00:01")
	w.reboot(machinePath)
	assert.Equal(t, "02:00:00:00:00:01", w.board.last(t).hw.NICs[0].MAC)
}
