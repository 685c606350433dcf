package proxmox

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func onVersion(version string) func(*Config) { return func(c *Config) { c.Version = version } }

func TestVersion_IsWhatTheAPISays(t *testing.T) {
	for version, release := range map[string]string{"": "9.2", "8.0.4": "8.0", "9.0.10": "9.0"} {
		w := newWorld(t, onVersion(version))
		got := w.get("version").(map[string]any)
		assert.Equal(t, release, got["release"])
		if version != "" {
			assert.Equal(t, version, got["version"])
		}
	}
}

// Proxmox VE 9 replaced VM.Monitor.
func TestVersion_DecidesThePrivilegeForTheGuestAgent(t *testing.T) {
	for version, privilege := range map[string]string{"8.4.1": "VM.Monitor", "9.0.10": "VM.GuestAgent.Audit"} {
		w := newWorld(t, onVersion(version))
		w.create()
		w.token = lesser
		r := w.call(http.MethodGet, machinePath+"agent/network-get-interfaces", nil)
		assert.Equal(t, "Permission check failed (/vms/1111, "+privilege+")", r.reason)
	}
}

// Fixed in qemu-server 8.0.7.
func TestVersion_Before81StartsNoQ35WithTheSecondUnitOfAnIDEController(t *testing.T) {
	for version, ends := range map[string]string{"8.0.4": "start failed: QEMU exited with code 1", "8.1.3": "OK", "9.0.10": "OK"} {
		w := newWorld(t, onVersion(version))
		w.download("pve1")
		w.ok(http.MethodPost, "nodes/pve1/qemu", recorded(t))
		require.Equal(t, ends, w.do(http.MethodPost, machinePath+"status/start", nil), version)
	}
	w := newWorld(t, onVersion("8.0.4"))
	w.download("pve1")
	form := recorded(t)
	form.Set("ide0", form.Get("ide3"))
	form.Del("ide3")
	form.Set("boot", "order=scsi0;ide0")
	w.ok(http.MethodPost, "nodes/pve1/qemu", form)
	w.ok(http.MethodPost, machinePath+"status/start", nil)
}
