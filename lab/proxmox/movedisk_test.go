package proxmox

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/fault"
)

// stores are the storages of the tests: local ones, and a shared one for files.
func stores(c *Config) {
	c.Storages = append(DefaultStorages(),
		Storage{Name: "fast", Type: "rbd", Content: []string{"images"}, Shared: true},
		Storage{Name: "nas", Type: "nfs", Content: []string{"images"}, Shared: true},
		Storage{Name: "small", Type: "lvm", Content: []string{"images"}, Total: 10 << 30},
		Storage{Name: "other", Type: "lvmthin", Content: []string{"images"}, Nodes: []string{"pve2"}})
}

// moved asks for a move of a disk as the provider does, and returns how it ends.
func (w *world) moved(disk, storage string, more ...string) string {
	w.t.Helper()
	return w.do(http.MethodPost, machinePath+"move_disk", moveForm(disk, storage, append([]string{"delete", "1"}, more...)...))
}

func moveForm(disk, storage string, more ...string) url.Values {
	form := url.Values{"disk": {disk}, "storage": {storage}}
	for pair := range slices.Chunk(more, 2) {
		form.Set(pair[0], pair[1])
	}
	return form
}

func (w *world) option(key string) string {
	w.t.Helper()
	value, _ := w.get(machinePath + "config").(map[string]any)[key].(string)
	return value
}

// ofVM are the volumes of the VM, without the image.
func (w *world) ofVM() []string {
	return slices.DeleteFunc(w.c.Volumes(), func(v string) bool { return strings.Contains(v, "iso") })
}

func TestMoveDisk_AStoppedVMStartsFromItsDiskElsewhere(t *testing.T) {
	w := newWorld(t, stores)
	w.create()
	disk := w.board.last(t).hw.Disks["scsi0"]
	disk.Content = "installed"
	w.ok(http.MethodPost, machinePath+"status/stop", nil)
	before := w.option("scsi0")
	upid := w.call(http.MethodPost, machinePath+"move_disk", moveForm("scsi0", "fast", "delete", "1")).data.(string)
	assert.Contains(t, upid, ":qmmove:1111:")
	require.Equal(t, "OK", w.exit(upid))
	assert.Contains(t, w.logOf(upid), "copying volume 'local-lvm:vm-1111-disk-0' from current storage 'local-lvm' to target storage 'fast'")
	assert.Equal(t, strings.Replace(before, "local-lvm:", "fast:", 1), w.option("scsi0"), "its options and its size stay")
	assert.Equal(t, []string{"fast:vm-1111-disk-0", "pve1/local-lvm:vm-1111-cloudinit", "pve1/local-lvm:vm-1111-disk-1"}, w.ofVM())
	w.ok(http.MethodPost, machinePath+"status/start", nil)
	now := w.board.last(t).hw
	assert.Equal(t, "installed", now.Disks["scsi0"].Content)
	assert.Equal(t, "fast:vm-1111-disk-0", now.Disks["scsi0"].Volume)
	assert.Equal(t, "local-lvm:vm-1111-disk-1", now.EFI.Volume)
}

func TestMoveDisk_ARunningVMKeepsItsDisk(t *testing.T) {
	w := newWorld(t, stores)
	w.create()
	guest := w.board.last(t)
	require.Equal(t, "OK", w.moved("scsi0", "fast"))
	require.Equal(t, "OK", w.moved("efidisk0", "nas"))
	assert.Equal(t, 1, w.board.count(), "it was not powered on again")
	assert.Nil(t, guest.plugged, "nothing was plugged in or out")
	assert.Equal(t, "fast:vm-1111-disk-0", guest.hw.Disks["scsi0"].Volume)
	assert.Contains(t, w.option("efidisk0"), "nas:1111/vm-1111-disk-0.raw,")
	assert.Contains(t, w.option("efidisk0"), "size=528K", "as large as a new EFI disk is there")

	// The disk is still the one that is in use, and grows.
	require.Equal(t, "OK", w.do(http.MethodPut, machinePath+"resize", url.Values{"disk": {"scsi0"}, "size": {"25G"}}))
	assert.Equal(t, map[string]int64{"scsi0": 25 << 30}, guest.grown)
	assert.Contains(t, w.do(http.MethodDelete, "nodes/pve1/storage/fast/content/vm-1111-disk-0", nil), "in use")
}

func TestMoveDisk_OfATPMNeedsAVMThatIsOff(t *testing.T) {
	w := newWorld(t, stores)
	w.download("pve1")
	w.ok(http.MethodPost, "nodes/pve1/qemu", with(t, "tpmstate0", "local-lvm:1,version=v2.0"))
	w.ok(http.MethodPost, machinePath+"status/start", nil)
	w.board.last(t).hw.TPM.Content = "keys"
	before := w.ofVM()
	assert.Equal(t, "storage migration failed: cannot move TPM state while VM is running", w.moved("tpmstate0", "fast"))
	assert.Equal(t, before, w.ofVM())
	w.ok(http.MethodPost, machinePath+"status/stop", nil)
	require.Equal(t, "OK", w.moved("tpmstate0", "fast"))
	w.ok(http.MethodPost, machinePath+"status/start", nil)
	assert.Equal(t, "keys", w.board.last(t).hw.TPM.Content)
}

func TestMoveDisk_TheFormerVolumeStaysUnlessItIsToBeDeleted(t *testing.T) {
	w := newWorld(t, stores)
	w.create()
	upid := w.call(http.MethodPost, machinePath+"move_disk", moveForm("scsi0", "fast")).data.(string)
	require.Equal(t, "OK", w.exit(upid))
	assert.Contains(t, w.logOf(upid), "adding source volume 'local-lvm:vm-1111-disk-0' as 'unused0' to config")
	assert.Equal(t, "local-lvm:vm-1111-disk-0", w.option("unused0"))
	require.Equal(t, "OK", w.moved("unused0", "nas"), "an unused disk moves, too")
	assert.Equal(t, "nas:1111/vm-1111-disk-0.raw", w.option("unused0"))

	// On the way back, the first free number is another one.
	require.Equal(t, "OK", w.do(http.MethodPost, "nodes/pve1/qemu", url.Values{"vmid": {"2000"}, "scsi0": {"local-lvm:1"}}))
	require.Equal(t, http.StatusOK, w.call(http.MethodPut, machinePath+"config", url.Values{"scsi1": {"local-lvm:8"}}).code)
	require.Equal(t, "OK", w.moved("scsi0", "local-lvm"))
	assert.Contains(t, w.option("scsi0"), "local-lvm:vm-1111-disk-2,", "0 is the data disk, 1 the EFI disk")
}

func TestMoveDisk_OfTheCloudInitDriveMakesItAnew(t *testing.T) {
	w := newWorld(t, stores)
	w.create()
	w.ok(http.MethodPost, machinePath+"status/stop", nil)
	w.ok(http.MethodPost, machinePath+"move_disk", moveForm("ide2", "nas"))
	assert.Equal(t, "nas:1111/vm-1111-cloudinit.raw,media=cdrom,size=4M", w.option("ide2"))
	assert.NotContains(t, strings.Join(w.ofVM(), " "), "local-lvm:vm-1111-cloudinit", "nobody needs the former one")
	w.ok(http.MethodPost, machinePath+"status/start", nil)
	assert.NotEmpty(t, w.board.last(t).hw.CloudInit.Addresses)
}

func TestMoveDisk_TheFormatIsOneThatTheStorageHas(t *testing.T) {
	w := newWorld(t, stores)
	w.create()
	require.Equal(t, "OK", w.moved("scsi0", "nas", "format", "qcow2"))
	assert.Contains(t, w.option("scsi0"), "nas:1111/vm-1111-disk-0.qcow2,")
	assert.NotContains(t, w.option("scsi0"), "format=")
	require.Equal(t, "OK", w.moved("scsi0", "nas", "format", "raw"), "another format on the same storage")
	assert.Contains(t, w.option("scsi0"), "nas:1111/vm-1111-disk-1.raw,")
	upid := w.call(http.MethodPost, machinePath+"move_disk", moveForm("scsi0", "fast", "format", "qcow2")).data.(string)
	require.Equal(t, "OK", w.exit(upid))
	assert.Contains(t, w.logOf(upid), "format 'qcow2' is not supported by the target storage 'fast' - using 'raw' instead")
	assert.Contains(t, w.option("scsi0"), "fast:vm-1111-disk-0,")
}

func TestMoveDisk_RefusesWhatProxmoxRefuses(t *testing.T) {
	const same = "you can't move to the same storage with same format"
	without := func(privilege string) func(*world) {
		return func(w *world) { w.breaks(fault.ProxmoxPermission, privilege, "") }
	}
	for name, tc := range map[string]struct {
		prepare func(*world)
		form    url.Values
		says    string
	}{
		"the same storage":       {form: moveForm("scsi0", "local-lvm"), says: same},
		"the same format":        {form: moveForm("scsi0", "local-lvm", "format", "raw"), says: same},
		"a CD drive":             {form: moveForm("ide3", "fast"), says: "you can't move a cdrom"},
		"a missing disk":         {form: moveForm("scsi7", "fast"), says: "disk 'scsi7' does not exist"},
		"something else":         {form: moveForm("net0", "fast"), says: "does not have a value in the enumeration 'ide0, ide1, "},
		"no disk":                {form: url.Values{"storage": {"fast"}}, says: "property is missing and it is not optional"},
		"no target":              {form: url.Values{"disk": {"scsi0"}}, says: "both 'storage' and 'target-vmid' missing, either needs to be set"},
		"two targets":            {form: moveForm("scsi0", "fast", "target-vmid", "2000"), says: "but not both"},
		"an unknown parameter":   {form: moveForm("scsi0", "fast", "online", "1"), says: "property is not defined in schema"},
		"an unknown format":      {form: moveForm("scsi0", "fast", "format", "vdi"), says: "in the enumeration 'raw, qcow2, vmdk'"},
		"another configuration":  {form: moveForm("scsi0", "fast", "digest", "0123"), says: "detected modified configuration"},
		"an unknown storage":     {form: moveForm("scsi0", "nowhere"), says: "storage 'nowhere' does not exist"},
		"a storage of elsewhere": {form: moveForm("scsi0", "other"), says: "storage 'other' is not available on node 'pve1'"},
		"a storage for files":    {form: moveForm("scsi0", "local"), says: "storage 'local' does not support vm images"},
		"a locked VM": {prepare: func(w *world) { w.c.machines[1111].lock = "backup" }, form: moveForm("scsi0", "fast"),
			says: "VM is locked (backup)"},
		"a token that may not": {prepare: without("VM.Config.Disk"), form: moveForm("scsi0", "fast"),
			says: "Permission check failed (/vms/1111, VM.Config.Disk)"},
		"a token that may not write there": {prepare: without("Datastore.AllocateSpace"), form: moveForm("scsi0", "fast"),
			says: "Permission check failed (/storage/fast, Datastore.AllocateSpace)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, stores)
			w.create()
			if tc.prepare != nil {
				tc.prepare(w)
			}
			config, volumes := w.get(machinePath+"config"), w.ofVM()
			r := w.call(http.MethodPost, machinePath+"move_disk", tc.form)
			assert.NotEqual(t, http.StatusOK, r.code)
			said := r.reason
			for _, problem := range r.errors {
				said += " " + problem
			}
			assert.Contains(t, said, tc.says)
			assert.Equal(t, config, w.get(machinePath+"config"))
			assert.Equal(t, volumes, w.ofVM())
		})
	}
}

func TestMoveDisk_ThatFailsLeavesTheDiskWhereItWas(t *testing.T) {
	w := newWorld(t, stores)
	w.create()
	config, volumes := w.get(machinePath+"config"), w.ofVM()
	unchanged := func() {
		t.Helper()
		assert.Equal(t, config, w.get(machinePath+"config"))
		assert.Equal(t, volumes, w.ofVM())
	}
	w.breaks(fault.DatastoreFull, "fast", "")
	assert.Equal(t, "storage migration failed: rbd create 'vm-1111-disk-0' error: rbd: create error: (28) No space left on device",
		w.moved("scsi0", "fast"))
	unchanged()
	assert.Contains(t, w.moved("scsi0", "small"), "insufficient free space", "a thick storage takes no more than it has")
	unchanged()
	w.breaks(fault.ProxmoxTaskFails, "qmmove", "")
	assert.Contains(t, w.moved("scsi0", "nas"), "storage migration failed: copy failed: ")
	unchanged()
	w.faults.Clear()
	require.Equal(t, "OK", w.moved("scsi0", "fast"))
}

// large gives the VM a disk whose copy takes minutes, and begins to move it.
func (w *world) large() (upid string) {
	w.t.Helper()
	require.Equal(w.t, http.StatusOK, w.call(http.MethodPut, machinePath+"config", url.Values{"scsi1": {"local-lvm:4000000"}}).code)
	upid = w.call(http.MethodPost, machinePath+"move_disk", moveForm("scsi1", "fast", "delete", "1")).data.(string)
	require.Eventually(w.t, func() bool { return slices.Contains(w.c.Volumes(), "fast:vm-1111-disk-0") }, 5*time.Second, time.Millisecond)
	return upid
}

func TestMoveDisk_ThatIsInterruptedLeavesTheDiskWhereItWas(t *testing.T) {
	w := newWorld(t, stores)
	w.create()
	upid := w.large()
	require.Equal(t, http.StatusOK, w.call(http.MethodDelete, "nodes/pve1/tasks/"+url.PathEscape(upid), nil).code)
	assert.Equal(t, "storage migration failed: interrupted by signal", w.exit(upid))
	assert.NotContains(t, w.c.Volumes(), "fast:vm-1111-disk-0")
	assert.Contains(t, w.option("scsi1"), "local-lvm:vm-1111-disk-2,")
}

// The configuration has no lock meanwhile, unlike during a migration or a backup.
func TestMoveDisk_OtherTasksOnTheVMWaitForIt(t *testing.T) {
	w := newWorld(t, stores)
	w.create()
	w.ok(http.MethodPost, machinePath+"status/stop", nil)
	w.breaks(fault.ProxmoxTaskHangs, "qmmove", "")
	first := w.call(http.MethodPost, machinePath+"move_disk", moveForm("scsi0", "fast", "delete", "1")).data.(string)
	second := w.call(http.MethodPost, machinePath+"status/start", nil).data.(string)
	assert.NotContains(t, w.get(machinePath+"status/current"), "lock")
	assert.Equal(t, "stopped", w.status())
	w.faults.Clear()
	assert.Equal(t, "OK", w.exit(first))
	assert.Equal(t, "OK", w.exit(second))
	assert.Equal(t, "fast:vm-1111-disk-0", w.board.last(t).hw.Disks["scsi0"].Volume)
}

func TestMoveDisk_OfAVMThatEndsMeanwhileFails(t *testing.T) {
	w := newWorld(t, stores)
	w.create()
	upid := w.large()
	w.board.last(t).PowerOff()
	assert.Equal(t, "storage migration failed: block job (mirror) error: VM 1111 not running", w.exit(upid))
	assert.NotContains(t, w.c.Volumes(), "fast:vm-1111-disk-0")
}

func TestMoveDisk_TakesTimeByTheSizeOfTheDisk(t *testing.T) {
	w := newWorld(t, stores, func(c *Config) { c.Latency.Task = 10 * time.Millisecond })
	w.create()
	took := func(disk, storage string) time.Duration {
		begin := time.Now()
		require.Equal(t, "OK", w.moved(disk, storage))
		return time.Since(begin)
	}
	require.Equal(t, http.StatusOK, w.call(http.MethodPut, machinePath+"config", url.Values{"scsi1": {"local-lvm:200"}}).code)
	assert.GreaterOrEqual(t, took("scsi1", "fast"), 110*time.Millisecond, "a short task, and ten times that for the 200 GiB")
}
