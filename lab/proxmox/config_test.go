package proxmox

import (
	"encoding/json"
	"flag"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite golden files")

// recorded is the create request of the Terraform provider in the Pulumi plugin.
func recorded(t *testing.T) url.Values {
	t.Helper()
	raw, err := os.ReadFile("testdata/create.form")
	require.NoError(t, err)
	form := url.Values{}
	for line := range strings.Lines(string(raw)) {
		key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " = ")
		require.True(t, ok, line)
		form.Set(key, value)
	}
	return form
}

func TestConfig_ReadsBackAsProxmoxStoresIt(t *testing.T) {
	w := newWorld(t)
	w.create()
	config := w.get("nodes/pve1/qemu/1111/config").(map[string]any)
	for _, random := range []string{"vmgenid", "smbios1", "meta", "digest"} {
		assert.NotEmpty(t, config[random], random)
		config[random] = "(random)"
	}
	got, err := json.MarshalIndent(config, "", "  ")
	require.NoError(t, err)
	got = append(got, '\n')
	const golden = "testdata/config.json"
	if *update {
		require.NoError(t, os.WriteFile(golden, got, 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got))
}

func TestConfig_UpdateWithWhatItReadChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.create()
	before := w.get("nodes/pve1/qemu/1111/config")
	r := w.call(http.MethodPut, "nodes/pve1/qemu/1111/config", url.Values{
		"name":  {"infra-cp-1"},
		"scsi0": {"file=local-lvm:vm-1111-disk-0,size=21474836480,aio=io_uring,backup=1,iothread=1,ssd=1,discard=on,cache=none,replicate=1"},
		"ide2":  {"file=local-lvm:vm-1111-cloudinit,media=cdrom,"},
	})
	require.Equal(t, http.StatusOK, r.code, r.reason)
	assert.Nil(t, r.data)
	assert.Equal(t, before, w.get("nodes/pve1/qemu/1111/config"))
}

func TestNormalise_StoresTheFormOfProxmox(t *testing.T) {
	for _, tc := range []struct{ key, in, want string }{
		{"onboot", "yes", "1"},
		{"protection", "0", "0"},
		{"tags", "Talos;infra,talos", "infra;talos"},
		{"net0", "model=virtio,bridge=vmbr0,firewall=0,macaddr=BC:24:11:00:00:11", "virtio=BC:24:11:00:00:11,bridge=vmbr0,firewall=0"},
		{"net1", "e1000=BC:24:11:00:00:12,bridge=vmbr1,tag=20", "e1000=BC:24:11:00:00:12,bridge=vmbr1,tag=20"},
		{"cpu", "cputype=host", "cputype=host"},
		{"boot", "order=scsi0;ide3", "order=scsi0;ide3"},
	} {
		assert.Equal(t, tc.want, normalise(tc.key, tc.in), tc.key)
	}
	assert.Regexp(t, `^virtio=BC:24:11(:[0-9A-F]{2}){3},bridge=vmbr0$`, normalise("net0", "virtio,bridge=vmbr0"))
}

func TestFormatSize_UsesTheLargestUnitThatDivides(t *testing.T) {
	for in, want := range map[int64]string{0: "0", 1000: "1000", 1024: "1K", 4 << 20: "4M", 528 << 10: "528K", 20 << 30: "20G", 2 << 40: "2T", 100<<20 + 1024: "102401K"} {
		assert.Equal(t, want, formatSize(in))
		back, err := parseSize(want)
		require.NoError(t, err)
		assert.Equal(t, in, back)
	}
	_, err := parseSize("20X")
	assert.Error(t, err)
}

func TestConfig_DrivesMoveToUnusedAndEnd(t *testing.T) {
	w := newWorld(t)
	w.create()
	put := func(form url.Values) {
		t.Helper()
		r := w.call(http.MethodPut, "nodes/pve1/qemu/1111/config", form)
		require.Equal(t, http.StatusOK, r.code, r.reason)
	}
	volumes := func() (out []string) {
		for _, v := range w.get("nodes/pve1/storage/local-lvm/content").([]any) {
			out = append(out, v.(map[string]any)["volid"].(string))
		}
		return out
	}
	put(url.Values{"delete": {"scsi0,ide2"}, "scsi1": {"file=local-lvm:10,format=raw"}})
	config := w.get("nodes/pve1/qemu/1111/config").(map[string]any)
	assert.Equal(t, "local-lvm:vm-1111-disk-0", config["unused0"])
	assert.Equal(t, "local-lvm:vm-1111-disk-2,size=10G", config["scsi1"])
	assert.Equal(t, "order=ide3", config["boot"], "a deleted drive leaves the boot order")
	assert.NotContains(t, config, "ide2")
	assert.Contains(t, volumes(), "local-lvm:vm-1111-cloudinit", "an IDE drive cannot be unplugged")
	w.ok(http.MethodPost, machinePath+"status/stop", nil)
	assert.Equal(t, []string{"local-lvm:vm-1111-disk-0", "local-lvm:vm-1111-disk-1", "local-lvm:vm-1111-disk-2"}, volumes(), "the cloud-init drive has ended")
	put(url.Values{"delete": {"unused0"}, "ide3": {"none,media=cdrom"}})
	assert.Equal(t, []string{"local-lvm:vm-1111-disk-1", "local-lvm:vm-1111-disk-2"}, volumes())
	assert.Equal(t, "none,media=cdrom", w.get("nodes/pve1/qemu/1111/config").(map[string]any)["ide3"])
}

func TestConfig_AFailedChangeLeavesNothingBehind(t *testing.T) {
	w := newWorld(t)
	w.create()
	before := w.get("nodes/pve1/storage/local-lvm/content")
	r := w.call(http.MethodPut, "nodes/pve1/qemu/1111/config",
		url.Values{"scsi1": {"file=local-lvm:10,format=raw"}, "scsi2": {"file=local-lvm:10,format=qcow2"}})
	assert.Equal(t, http.StatusInternalServerError, r.code)
	assert.Contains(t, r.reason, "unsupported format 'qcow2'")
	assert.Equal(t, before, w.get("nodes/pve1/storage/local-lvm/content"))
}

func TestConfig_ResizeGrowsAndNeverShrinks(t *testing.T) {
	w := newWorld(t)
	w.create()
	const path = "nodes/pve1/qemu/1111/resize"
	w.ok(http.MethodPut, path, url.Values{"disk": {"scsi0"}, "size": {"+5G"}})
	w.ok(http.MethodPut, path, url.Values{"disk": {"scsi0"}, "size": {"30G"}})
	assert.Contains(t, w.get("nodes/pve1/qemu/1111/config").(map[string]any)["scsi0"], "size=30G")
	assert.Equal(t, map[string]int64{"scsi0": 30 << 30}, w.board.last(t).grown, "the guest that runs is told")
	w.reboot(machinePath)
	assert.Equal(t, int64(30<<30), w.board.last(t).hw.Disks["scsi0"].Size)
	assert.Equal(t, "shrinking disks is not supported", w.do(http.MethodPut, path, url.Values{"disk": {"scsi0"}, "size": {"10G"}}))
	assert.Contains(t, w.call(http.MethodPut, path, url.Values{"disk": {"scsi7"}, "size": {"10G"}}).reason, "disk 'scsi7' does not exist")
}

func TestConfig_ADigestOfAnotherStateIsRefused(t *testing.T) {
	w := newWorld(t)
	w.create()
	digest := w.get("nodes/pve1/qemu/1111/config").(map[string]any)["digest"].(string)
	put := url.Values{"cores": {"4"}, "digest": {digest}}
	require.Equal(t, http.StatusOK, w.call(http.MethodPut, "nodes/pve1/qemu/1111/config", put).code)
	assert.Contains(t, w.call(http.MethodPut, "nodes/pve1/qemu/1111/config", put).reason, "detected modified configuration")
}
