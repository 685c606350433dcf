package proxmox

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newText serves a text at every path.
func newText(t *testing.T, text string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/missing.iso") {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestDownload_BringsTheFileThatTheURLAnnounces(t *testing.T) {
	w := newWorld(t)
	meta := w.get("nodes/pve1/query-url-metadata?url=" + url.QueryEscape(w.iso) + "&verify-certificates=1").(map[string]any)
	assert.Equal(t, "nocloud-amd64.iso", meta["filename"])
	assert.Equal(t, "application/x-iso9660-image", meta["mimetype"])

	w.download("pve1")
	content := w.get("nodes/pve1/storage/local/content").([]any)
	require.Len(t, content, 1)
	file := content[0].(map[string]any)
	assert.Equal(t, "local:iso/talos.iso", file["volid"])
	assert.Equal(t, meta["size"], file["size"], "or every refresh would download it again")
	assert.Empty(t, w.get("nodes/pve2/storage/local/content"), "each node has its own local storage")

	got := w.get("nodes/pve1/storage/local/content/local:iso%2Ftalos.iso").(map[string]any)
	assert.Equal(t, "/var/lib/vz/template/iso/talos.iso", got["path"])
	w.ok(http.MethodDelete, "nodes/pve1/storage/local/content/iso%2Ftalos.iso", nil)
	assert.Equal(t, "volume_size_info on 'local:iso/talos.iso' failed",
		w.call(http.MethodGet, "nodes/pve1/storage/local/content/local:iso%2Ftalos.iso", nil).reason)
}

func TestDownload_AWrongRequestIsRefused(t *testing.T) {
	w := newWorld(t)
	text := newText(t, "text")
	sum := sha256.Sum256([]byte("text"))
	good := hex.EncodeToString(sum[:])
	w.download("pve1")
	for _, tc := range []struct {
		name, storage, says string
		form                url.Values
		task                bool
	}{
		{name: "existing file", says: "refusing to override existing file '/var/lib/vz/template/iso/talos.iso'", task: true},
		{name: "missing file", form: url.Values{"filename": {"b.iso"}, "url": {text + "/missing.iso"}}, says: "download failed: invalid server response: '404 Not Found'", task: true},
		{name: "checksum", form: url.Values{"filename": {"c.iso"}, "url": {text}, "checksum": {"00"}, "checksum-algorithm": {"sha256"}}, says: "checksum mismatch: got '" + good + "' != expect '00', aborting", task: true},
		{name: "right checksum", form: url.Values{"filename": {"d.iso"}, "url": {text}, "checksum": {good}, "checksum-algorithm": {"sha256"}}, says: "OK", task: true},
		{name: "compression", form: url.Values{"compression": {"zst"}}, says: "not modelled"},
		{name: "extension", form: url.Values{"filename": {"talos.raw.xz"}}, says: "wrong file extension"},
		{name: "address", form: url.Values{"filename": {"e.iso"}, "url": {"ftp://x"}}, says: "regex", task: true},
		{name: "block storage", storage: "local-lvm", says: "can't upload to storage type 'lvmthin', not a file based storage!"},
		{name: "content type", form: url.Values{"content": {"import"}}, says: "storage 'local' is not configured for content-type 'import'"},
		{name: "unknown storage", storage: "nowhere", says: "storage 'nowhere' does not exist"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			form := url.Values{"content": {"iso"}, "filename": {"talos.iso"}, "url": {w.iso}}
			for k, v := range tc.form {
				form[k] = v
			}
			storage := tc.storage
			if storage == "" {
				storage = "local"
			}
			path := "nodes/pve1/storage/" + storage + "/download-url"
			if tc.task {
				assert.Contains(t, w.do(http.MethodPost, path, form), tc.says)
				return
			}
			r := w.call(http.MethodPost, path, form)
			assert.NotEqual(t, http.StatusOK, r.code)
			assert.Contains(t, r.reason+r.errors["filename"], tc.says)
		})
	}
	r := w.call(http.MethodGet, "nodes/pve1/query-url-metadata?url="+url.QueryEscape(text+"/missing.iso"), nil)
	assert.Equal(t, "invalid server response: '404 Not Found'", r.reason)
}

func TestStorage_CountsWhatItHolds(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Storages = []Storage{
			{Name: "local", Type: "dir", Content: []string{"iso", "images"}, Total: 30 << 30},
			{Name: "san", Type: "lvm", Content: []string{"images"}, Shared: true, Total: 15 << 30},
			{Name: "nvme", Type: "lvmthin", Content: []string{"images"}, Nodes: []string{"pve2"}},
		}
	})
	w.download("pve1")
	create := func(node, vmid, disk string) string {
		t.Helper()
		return w.do(http.MethodPost, "nodes/"+node+"/qemu", url.Values{"vmid": {vmid}, "scsi0": {disk}})
	}
	assert.Equal(t, "OK", create("pve1", "201", "san:10"))
	assert.Contains(t, create("pve2", "202", "san:10"), `has insufficient free space (1280 extents): 2560 required.`,
		"shared: seen from both nodes")
	assert.Equal(t, "unable to create VM 203 - storage 'nvme' is not available on node 'pve1'", create("pve1", "203", "nvme:10"))
	assert.Equal(t, "OK", create("pve1", "204", "local:20,format=qcow2"))
	assert.Equal(t, "OK", create("pve2", "205", "local:20"), "local: each node has its own")
	assert.Contains(t, create("pve1", "206", "local:20"), "No space left on device")

	status := w.get("nodes/pve2/storage/san/status").(map[string]any)
	assert.Equal(t, float64(10<<30), status["used"])
	assert.Equal(t, float64(5<<30), status["avail"])
	assert.Equal(t, "local:204/vm-204-disk-0.qcow2,size=20G", w.get("nodes/pve1/qemu/204/config").(map[string]any)["scsi0"])
	assert.Len(t, w.get("nodes/pve1/storage?content=images"), 2)
	assert.Len(t, w.get("nodes/pve2/storage?content=images"), 3)
	assert.Len(t, w.get("nodes/pve1/storage/local/content?content=images"), 1)
	assert.Empty(t, w.get("nodes/pve1/storage/local/content?vmid=205"))
}

// Without a content type, Proxmox VE also lists what another node has.
func TestStorage_OfAnotherNodeIsListedAsNotEnabled(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Storages = append(DefaultStorages(), Storage{Name: "nvme", Type: "lvmthin", Content: []string{"images"}, Nodes: []string{"pve2"}})
	})
	elsewhere := map[string]any{"storage": "nvme", "type": "lvmthin", "content": "images", "shared": 0.0, "enabled": 0.0, "active": 0.0,
		"total": 0.0, "used": 0.0, "avail": 0.0}
	all := w.get("nodes/pve1/storage").([]any)
	assert.Len(t, all, 3)
	assert.Contains(t, all, any(elsewhere))
	assert.NotContains(t, w.get("nodes/pve1/storage?content=images"), any(elsewhere))
	assert.NotContains(t, w.get("nodes/pve2/storage"), any(elsewhere))
	w.token = lesser
	assert.Len(t, w.get("nodes/pve1/storage"), 3, "Datastore.Audit suffices")
}

func TestVolume_ADiskInUseStays(t *testing.T) {
	w := newWorld(t)
	w.create()
	const path = "nodes/pve1/storage/local-lvm/content/local-lvm:vm-1111-disk-0"
	assert.Contains(t, w.do(http.MethodDelete, path, nil), "in use")
	w.ok(http.MethodPost, machinePath+"status/stop", nil)
	w.ok(http.MethodDelete, path, nil)
	assert.Equal(t, "volume 'local-lvm:vm-1111-disk-0' does not exist", w.do(http.MethodPost, machinePath+"status/start", nil))
}

func TestVolume_AFileGoesWhileAMachineRunsFromIt(t *testing.T) {
	w := newWorld(t)
	w.create()
	const path = "nodes/pve1/storage/local/content/local:iso/talos.iso"
	require.Contains(t, w.get(machinePath + "config").(map[string]any)["ide3"], "local:iso/talos.iso")
	w.ok(http.MethodDelete, path, nil)
	assert.Equal(t, "running", w.status())
}

// These are the calls of Proxmox CSI, with the privileges of its role. The disks that it attaches belong to a VM that does not exist.
func TestVolume_OfAnotherVMIsAttachedAndOutlivesTheVM(t *testing.T) {
	const name, volume = "vm-9999-pvc-1", "pve1/local-lvm:vm-9999-pvc-1"
	w := newWorld(t, func(c *Config) {
		c.Tokens = append(c.Tokens, Token{ID: "csi@pve!csi", Secret: "third", Privileges: []string{
			"VM.Audit", "VM.Config.Disk", "Datastore.Allocate", "Datastore.AllocateSpace", "Datastore.Audit"}})
	})
	w.create()
	w.eject()
	const content = "nodes/pve1/storage/local-lvm/content"
	attach := func() string {
		return w.do(http.MethodPost, machinePath+"config", url.Values{"scsi1": {"local-lvm:" + name + ",backup=0,iothread=1"}})
	}
	w.token = "csi@pve!csi=third"
	assert.Contains(t, w.get("cluster/resources?type=storage").([]any), any(map[string]any{
		"id": "storage/pve1/local-lvm", "type": "storage", "storage": "local-lvm", "node": "pve1", "plugintype": "lvmthin", "status": "available",
		"shared": 0.0, "content": "images,rootdir", "maxdisk": float64(800 << 30), "disk": float64(20<<30 + cloudInitSize + efiSize)}))
	allocate := url.Values{"vmid": {"9999"}, "filename": {name}, "size": {"1048576"}}
	require.Equal(t, "local-lvm:"+name, w.call(http.MethodPost, content, allocate).data)
	assert.Contains(t, w.call(http.MethodPost, content, allocate).reason, "already exists")
	assert.Equal(t, "OK", attach())
	assert.Equal(t, []string{"scsi0", "scsi1"}, w.board.last(t).disks())
	assert.Contains(t, w.do(http.MethodDelete, content+"/"+name, nil), "in use")

	w.token = admin
	upid := w.call(http.MethodPost, machinePath+"migrate", live("pve2")).data.(string)
	assert.Equal(t, "migration aborted", w.exit(upid))
	assert.Contains(t, w.logOf(upid), "can't migrate local disk 'local-lvm:"+name+"': owned by other VM (owner = VM 9999)")

	w.token = "csi@pve!csi=third"
	require.Equal(t, http.StatusOK, w.call(http.MethodPut, machinePath+"unlink", url.Values{"idlist": {"scsi1"}}).code)
	assert.Equal(t, []string{"scsi0"}, w.board.last(t).disks())
	assert.NotContains(t, w.get(machinePath+"config"), "unused0", "it is not the VM's own")

	assert.Equal(t, "OK", attach())
	w.token = admin
	w.ok(http.MethodPost, machinePath+"status/stop", nil)
	w.ok(http.MethodDelete, strings.TrimSuffix(machinePath, "/")+"?purge=1&destroy-unreferenced-disks=1", nil)
	assert.Equal(t, []string{volume, "pve1/local:iso/talos.iso"}, w.c.Volumes())
}

func TestVolume_OfAnotherVMNeedsItsNameAndPrivileges(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Tokens = append(c.Tokens,
			Token{ID: "a@pve!disk", Secret: "x", Privileges: []string{"Datastore.Audit", "VM.Config.Disk"}},
			Token{ID: "a@pve!less", Secret: "x", Privileges: []string{"VM.Config.Disk"}})
		c.Storages = append(DefaultStorages(), Storage{Name: "nas", Type: "nfs", Content: []string{"images"}, Shared: true})
	})
	w.create()
	create := func(storage, name, size string) reply {
		form := url.Values{"vmid": {"9999"}, "filename": {name}, "size": {size}}
		return w.call(http.MethodPost, "nodes/pve1/storage/"+storage+"/content", form)
	}
	assert.Equal(t, "illegal name 'pvc-1' - should be 'vm-9999-*'", create("local-lvm", "pvc-1", "1024").reason)
	assert.Equal(t, "unable to parse volume filename 'vm-9999-pvc-1'", create("nas", "vm-9999-pvc-1", "1024").reason)
	assert.Equal(t, "Parameter verification failed.", create("nas", "vm-9999-pvc-1.raw", "big").reason)
	require.Equal(t, "nas:9999/vm-9999-pvc-1.raw", create("nas", "vm-9999-pvc-1.raw", "1G").data)
	for token, reason := range map[string]string{
		"a@pve!disk=x": "OK", "a@pve!less=x": "Permission check failed (/storage/nas, Datastore.Audit)",
	} {
		w.token = token
		assert.Equal(t, reason, w.call(http.MethodPost, machinePath+"config", url.Values{"scsi1": {"nas:9999/vm-9999-pvc-1.raw"}}).reason)
	}
}
