package proxmox

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// live are the parameters that the provider sends.
func live(target string) url.Values {
	return url.Values{"target": {target}, "online": {"1"}, "with-local-disks": {"1"}}
}

func (w *world) logOf(upid string) string {
	w.t.Helper()
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	return strings.Join(w.c.tasks[upid].log, "\n")
}

// eject empties the CD drive of the recorded machine.
func (w *world) eject() {
	w.t.Helper()
	r := w.call(http.MethodPut, machinePath+"config", url.Values{"ide3": {"none,media=cdrom"}})
	require.Equal(w.t, http.StatusOK, r.code, r.reason)
}

func TestMigrate_RefusesALocalImageInTheCDDrive(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.download("pve2") // a file of the same name on the target does not help
	upid := w.call(http.MethodPost, machinePath+"migrate", live("pve2")).data.(string)
	assert.Equal(t, "migration aborted", w.exit(upid))
	assert.Contains(t, w.logOf(upid), "can't migrate local disk 'local:iso/talos.iso': local cdrom image")
	assert.Equal(t, "pve1", w.c.VMs()[0].Node)
}

func TestMigrate_MovesARunningVMWithItsLocalDisks(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.eject()
	w.ok(http.MethodPost, machinePath+"migrate", live("pve2"))
	vm := w.c.VMs()[0]
	assert.Equal(t, "pve2", vm.Node)
	assert.Equal(t, "running", vm.Status)
	assert.Equal(t, 1, w.board.count(), "it was not powered on again")
	assert.Equal(t, "pve2", w.board.last(t).hw.Host)
	for _, volume := range w.c.Volumes() {
		if !strings.Contains(volume, "iso") {
			assert.True(t, strings.HasPrefix(volume, "pve2/local-lvm:vm-1111-"), volume)
		}
	}
	assert.Contains(t, w.call(http.MethodGet, machinePath+"config", nil).reason, "does not exist")
	w.reboot("nodes/pve2/qemu/1111/")
}

// The HA manager moves the VM by itself, once it has noticed the request.
func TestMigrate_OfAnHAResourceEndsBeforeTheVMHasMoved(t *testing.T) {
	for name, migrate := range map[string]func(*world){
		"by the VM": func(w *world) { w.ok(http.MethodPost, machinePath+"migrate", live("pve2")) },
		"by the resource": func(w *world) {
			r := w.call(http.MethodPost, "cluster/ha/resources/vm:1111/migrate", url.Values{"node": {"pve2"}})
			require.Equal(w.t, map[string]any{"sid": "vm:1111", "requested-node": "pve2"}, r.data)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create()
			w.eject()
			require.Equal(t, http.StatusOK, w.call(http.MethodPost, "cluster/ha/resources", url.Values{"sid": {"vm:1111"}}).code)
			assert.Equal(t, "vm", w.get("cluster/ha/resources/vm:1111").(map[string]any)["type"])
			migrate(w)
			assert.Equal(t, "pve1", w.c.VMs()[0].Node)
			assert.Eventually(t, func() bool { return w.c.VMs()[0].Node == "pve2" }, time.Minute, time.Millisecond)
			assert.Equal(t, "running", w.c.VMs()[0].Status)
		})
	}
}

func TestMigrate_OfAnHAResourceNeedsAnotherPrivilege(t *testing.T) {
	w := newWorld(t)
	w.create()
	assert.Equal(t, "resource 'vm:1111' is not HA managed",
		w.call(http.MethodPost, "cluster/ha/resources/vm:1111/migrate", url.Values{"node": {"pve2"}}).reason)
	require.Equal(t, http.StatusOK, w.call(http.MethodPost, "cluster/ha/resources", url.Values{"sid": {"vm:1111"}}).code)
	assert.Equal(t, "create resource failed: resource ID 'vm:1111' already defined",
		w.call(http.MethodPost, "cluster/ha/resources", url.Values{"sid": {"vm:1111"}}).reason)
	all := w.token
	w.token = lesser
	assert.Equal(t, "Permission check failed (/, Sys.Console)",
		w.call(http.MethodPost, "cluster/ha/resources/vm:1111/migrate", url.Values{"node": {"pve2"}}).reason)
	w.token = all
	require.Equal(t, http.StatusOK, w.call(http.MethodDelete, "cluster/ha/resources/vm:1111", nil).code)
	assert.Equal(t, "no such resource 'vm:1111'", w.call(http.MethodGet, "cluster/ha/resources/vm:1111", nil).reason)
}

func TestMigrate_LeavesSharedVolumesWhereTheyAre(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Storages = []Storage{
			{Name: "local", Type: "nfs", Content: []string{"iso"}, Shared: true},
			{Name: "local-lvm", Type: "rbd", Content: []string{"images"}, Shared: true},
		}
	})
	w.create()
	before := w.c.Volumes()
	w.ok(http.MethodPost, machinePath+"migrate", url.Values{"target": {"pve2"}, "online": {"1"}})
	assert.Equal(t, before, w.c.Volumes())
	assert.Equal(t, "pve2", w.c.VMs()[0].Node)
}

// restartedWith gives the VM a changed configuration, which waits until the VM has been off.
func (w *world) restartedWith(changes url.Values) {
	w.ok(http.MethodPost, machinePath+"status/stop", nil)
	require.Equal(w.t, http.StatusOK, w.call(http.MethodPut, machinePath+"config", changes).code)
	w.ok(http.MethodPost, machinePath+"status/start", nil)
}

func TestMigrate_RefusesWhatProxmoxRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		adjust  func(*Config)
		prepare func(*world)
		form    url.Values
		says    string
		task    bool
	}{
		"a running VM without online": {form: url.Values{"target": {"pve2"}}, says: "can't migrate running VM without --online"},
		"the node itself":             {form: live("pve1"), says: "target is local node."},
		"an unknown node":             {form: live("pve9"), says: "no such cluster node 'pve9'"},
		"no target":                   {form: url.Values{"online": {"1"}}, says: "property is missing and it is not optional"},
		"an unknown parameter":        {form: url.Values{"target": {"pve2"}, "live": {"1"}}, says: "property is not defined in schema"},
		"a missing privilege": {prepare: func(w *world) { w.token = lesser }, form: live("pve2"),
			says: "Permission check failed (/vms/1111, VM.Migrate)"},
		"a storage that the target lacks": {adjust: func(c *Config) {
			c.Storages = DefaultStorages()
			c.Storages[1].Nodes = []string{"pve1"}
		}, form: live("pve2"), says: "storage 'local-lvm' is not available on node 'pve2'"},
		"local disks of a running VM without with-local-disks": {form: url.Values{"target": {"pve2"}, "online": {"1"}},
			says: "can't live migrate attached local disks without with-local-disks option", task: true},
		"a device of the host": {prepare: func(w *world) {
			w.restartedWith(url.Values{"serial1": {"/dev/ttyS0"}})
		}, form: live("pve2"), says: "can't migrate VM which uses local devices: serial1", task: true},
		"more cores than the target has": {prepare: func(w *world) {
			w.restartedWith(url.Values{"cores": {"4"}})
		}, form: live("pve3"), says: "MAX 2 vcpus allowed per VM on this node", task: true},
		"a full storage": {adjust: func(c *Config) {
			c.Storages = DefaultStorages()
			c.Storages[1].Type = "lvm"
			c.Storages[1].Total = 30 << 30
		}, prepare: func(w *world) {
			w.ok(http.MethodPost, "nodes/pve2/qemu", url.Values{"vmid": {"2000"}, "scsi0": {"local-lvm:20"}})
		}, form: live("pve2"), says: "insufficient free space", task: true},
	} {
		t.Run(name, func(t *testing.T) {
			adjust := tc.adjust
			if adjust == nil {
				adjust = func(*Config) {}
			}
			w := newWorld(t, adjust)
			w.create()
			w.eject()
			if tc.prepare != nil {
				tc.prepare(w)
			}
			before := w.c.Volumes()
			r := w.call(http.MethodPost, machinePath+"migrate", tc.form)
			if tc.task {
				require.Equal(t, http.StatusOK, r.code, r.reason)
				upid := r.data.(string)
				assert.Equal(t, "migration aborted", w.exit(upid))
				assert.Contains(t, w.logOf(upid), tc.says)
			} else {
				assert.NotEqual(t, http.StatusOK, r.code)
				var fields []string
				for _, problem := range r.errors {
					fields = append(fields, problem)
				}
				assert.Contains(t, r.reason+strings.Join(fields, " "), tc.says)
			}
			assert.Equal(t, before, w.c.Volumes(), "nothing was moved")
			assert.Equal(t, "pve1", w.c.VMs()[0].Node)
		})
	}
}

func TestMigrate_MovesAStoppedVM(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.eject()
	w.ok(http.MethodPost, machinePath+"status/stop", nil)
	w.ok(http.MethodPost, machinePath+"migrate", url.Values{"target": {"pve2"}})
	w.ok(http.MethodPost, "nodes/pve2/qemu/1111/status/start", nil)
}
