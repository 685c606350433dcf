package proxmox

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// with returns the recorded request with one change; an empty value removes the key.
func with(t *testing.T, key, value string) url.Values {
	t.Helper()
	form := recorded(t)
	form.Set(key, value)
	if value == "" {
		form.Del(key)
	}
	return form
}

func TestCreate_AWrongRequestIsRefusedAtOnce(t *testing.T) {
	w := newWorld(t)
	for _, tc := range []struct {
		name, node, key, value string
		code                   int
		reason                 string // of the status line
		field, problem         string // of a failed verification
	}{
		{name: "unknown node", node: "pve9", code: 500, reason: "hostname lookup 'pve9' failed - failed to get address info for: pve9: Name or service not known"},
		{name: "unknown storage", key: "scsi0", value: "file=fast:20", code: 500, reason: "storage 'fast' does not exist"},
		{name: "storage for other content", key: "scsi0", value: "file=local:20", code: 400, field: "storage",
			problem: "storage 'local' does not support vm images"},
		{name: "invalid MAC", key: "net0", value: "model=virtio,bridge=vmbr0,macaddr=BC:24:11:00:01", code: 400, field: "net0",
			problem: "valid unicast MAC"},
		{name: "multicast MAC", key: "net0", value: "virtio=01:24:11:00:01:0B,bridge=vmbr0", code: 400, field: "net0",
			problem: "valid unicast MAC"},
		{name: "unknown card", key: "net0", value: "model=quick,bridge=vmbr0", code: 400, field: "net0", problem: "model"},
		{name: "unknown option", key: "colour", value: "red", code: 400, field: "colour", problem: "not defined in schema"},
		{name: "one drive too many", key: "ide4", value: "none,media=cdrom", code: 400, field: "ide4", problem: "not defined in schema"},
		{name: "unknown drive option", key: "scsi0", value: "file=local-lvm:20,colour=red", code: 400, field: "scsi0", problem: "colour"},
		{name: "name", key: "name", value: "infra_cp_1", code: 400, field: "name", problem: "valid DNS name"},
		{name: "address without prefix", key: "ipconfig0", value: "ip=10.25.11.11", code: 400, field: "ipconfig0", problem: "valid address"},
		{name: "gateway without address", key: "ipconfig0", value: "gw=10.25.11.1", code: 400, field: "ipconfig0", problem: "requires"},
		{name: "name server", key: "nameserver", value: "dns.home.arpa", code: 400, field: "nameserver", problem: "valid IP address"},
		{name: "BIOS", key: "bios", value: "uefi", code: 400, field: "bios", problem: "enumeration 'seabios, ovmf'"},
		{name: "cores", key: "cores", value: "0", code: 400, field: "cores", problem: "minimum value of 1"},
		{name: "memory", key: "memory", value: "2G", code: 400, field: "memory", problem: "integer"},
		{name: "VM id", key: "vmid", value: "11", code: 400, field: "vmid", problem: "valid VM ID"},
		{name: "root only", key: "args", value: "-s", code: 500, reason: "only root can set 'args' config"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			node := tc.node
			if node == "" {
				node = "pve1"
			}
			form := recorded(t)
			if tc.key != "" {
				form.Set(tc.key, tc.value)
			}
			r := w.call(http.MethodPost, "nodes/"+node+"/qemu", form)
			assert.Equal(t, tc.code, r.code)
			if tc.field == "" {
				assert.Equal(t, tc.reason, r.reason)
				return
			}
			assert.Equal(t, "Parameter verification failed.", r.reason)
			assert.Contains(t, r.errors[tc.field], tc.problem)
		})
	}
	assert.Empty(t, w.c.VMs())
}

func TestCreate_AllProblemsAreReportedAtOnce(t *testing.T) {
	w := newWorld(t)
	form := with(t, "name", "a_b")
	form.Set("cores", "none")
	r := w.call(http.MethodPost, "nodes/pve1/qemu", form)
	assert.Len(t, r.errors, 2)
}

func TestCreate_AFailedTaskLeavesNothingBehind(t *testing.T) {
	w := newWorld(t)
	w.download("pve1")
	for _, tc := range []struct{ key, value, exit string }{
		{"ide3", "file=local:iso/other.iso,media=cdrom", "unable to create VM 1111 - volume 'local:iso/other.iso' does not exist"},
		{"scsi0", "file=local-lvm:20,format=qcow2", "unable to create VM 1111 - unsupported format 'qcow2' at /usr/share/perl5/PVE/Storage/LvmThinPlugin.pm"},
		{"ide1", "file=local-lvm:cloudinit,media=cdrom", "unable to create VM 1111 - ide2 - cloud-init drive is already attached at 'ide1'"},
	} {
		form := with(t, tc.key, tc.value)
		if tc.key == "ide1" { // created before ide2
			form.Set("ide2", "file=local-lvm:cloudinit,media=cdrom")
		}
		got := w.do(http.MethodPost, "nodes/pve1/qemu", form)
		assert.Equal(t, tc.exit, got)
		assert.Empty(t, w.c.VMs())
		assert.Empty(t, w.get("nodes/pve1/storage/local-lvm/content"))
	}
}

func TestCreate_AnIDIsUsedOnceInTheWholeCluster(t *testing.T) {
	w := newWorld(t)
	w.create()
	r := w.call(http.MethodPost, "nodes/pve2/qemu", recorded(t))
	assert.Equal(t, http.StatusInternalServerError, r.code)
	assert.Equal(t, "unable to create VM 1111 - VM 1111 already exists on node 'pve1'", r.reason)
}

func TestMachine_AMissingOneIsReportedAsByProxmox(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"config", "status/current", "agent/network-get-interfaces"} {
		r := w.call(http.MethodGet, machinePath+path, nil)
		assert.Equal(t, http.StatusInternalServerError, r.code)
		assert.Equal(t, "Configuration file 'nodes/pve1/qemu-server/1111.conf' does not exist", r.reason, path)
	}
	assert.Contains(t, w.do(http.MethodPost, machinePath+"status/start", nil), "does not exist")
	assert.Equal(t, "unable to find configuration file for VM 1111 on node 'pve1'",
		w.call(http.MethodPost, machinePath+"status/reboot", nil).reason)

	w.create() // on pve1, and not visible on another node
	assert.Contains(t, w.call(http.MethodGet, "nodes/pve2/qemu/1111/config", nil).reason, "nodes/pve2/qemu-server/1111.conf' does not exist")
}

func TestDestroy_RefusesProtectedAndRunningMachines(t *testing.T) {
	w := newWorld(t)
	w.create()
	refused := func(reason string) {
		t.Helper()
		assert.Equal(t, reason, w.call(http.MethodDelete, machinePath+"?destroy-unreferenced-disks=1&purge=1", nil).reason)
	}
	refused("VM 1111 is running - destroy failed")
	require.Equal(t, http.StatusOK, w.call(http.MethodPut, machinePath+"config", url.Values{"protection": {"1"}}).code)
	w.ok(http.MethodPost, machinePath+"status/stop", nil)
	refused("can't remove VM 1111 - protection mode enabled")
	assert.Contains(t, w.call(http.MethodPut, machinePath+"config", url.Values{"delete": {"scsi0"}}).reason, "protection mode enabled")
	require.Equal(t, http.StatusOK, w.call(http.MethodPut, machinePath+"config", url.Values{"protection": {"0"}}).code)

	w.ok(http.MethodDelete, machinePath+"?destroy-unreferenced-disks=1&purge=1", nil)
	assert.Empty(t, w.c.VMs())
	assert.Empty(t, w.get("nodes/pve1/storage/local-lvm/content"))
	assert.Len(t, w.get("nodes/pve1/storage/local/content"), 1, "the ISO image is not the VM's")
	assert.Contains(t, w.call(http.MethodGet, machinePath+"status/current", nil).reason, "does not exist")
}

func TestUpdate_ABootOrderNeedsItsDevices(t *testing.T) {
	w := newWorld(t)
	w.create()
	put := func(form url.Values) reply { return w.call(http.MethodPut, machinePath+"config", form) }
	assert.Equal(t, "invalid bootorder: device 'scsi9' does not exist'", put(url.Values{"boot": {"order=scsi9"}}).reason)
	assert.Equal(t, http.StatusOK, put(url.Values{"boot": {"order=scsi9;scsi0"}, "scsi9": {"file=local-lvm:1"}}).code)
}

func TestRoutes_AnUnknownOneIsNotImplemented(t *testing.T) {
	w := newWorld(t)
	for method, path := range map[string]string{http.MethodGet: "nodes/pve1/ceph", http.MethodPut: "version"} {
		r := w.call(method, path, nil)
		assert.Equal(t, http.StatusNotImplemented, r.code)
		assert.Equal(t, "Method '"+method+" /"+path+"' not implemented", r.reason)
	}
}

func TestRoutes_EveryReadOnlyOneAnswers(t *testing.T) {
	w := newWorld(t)
	w.create()
	fill := map[string]string{"{node}": "pve1", "{storage}": "local-lvm", "{vmid}": "1111", "{volume...}": "local-lvm:vm-1111-disk-0"}
	asked := 0
	for pattern := range maps.Keys(routes) {
		path, ok := cutMethod(pattern, http.MethodGet)
		if !ok || slices.Contains([]string{
			"GET /cluster/ha/resources/{sid}", "GET /nodes/{node}/query-url-metadata",
			"GET /nodes/{node}/tasks/{upid}/status", "GET /nodes/{node}/tasks/{upid}/log",
		}, pattern) {
			continue
		}
		assert.NotNil(t, w.get(replaceAll(path, fill)), pattern)
		asked++
	}
	assert.Greater(t, asked, 10)
}
