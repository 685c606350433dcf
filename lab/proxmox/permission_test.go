package proxmox

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func cutMethod(pattern, method string) (string, bool) { return strings.CutPrefix(pattern, method+" /") }

func replaceAll(s string, by map[string]string) string {
	for old, replacement := range by {
		s = strings.ReplaceAll(s, old, replacement)
	}
	return s
}

// readOnly are the privileges of Proxmox VE's role PVEAuditor.
var readOnly = []string{"Datastore.Audit", "Sys.Audit", "VM.Audit"}

func TestAuthenticate_RefusesAnInvalidToken(t *testing.T) {
	w := newWorld(t)
	for token, reason := range map[string]string{
		"":                   "No ticket",
		"root@pam!lab":       "no valid API token",
		"root@pam!lab=wrong": "invalid token value!",
		"root@pam!other=x":   "no such token 'other' for user 'root@pam'",
	} {
		w.token = token
		r := w.call(http.MethodGet, "version", nil)
		assert.Equal(t, http.StatusUnauthorized, r.code, token)
		assert.Equal(t, reason, r.reason)
	}
}

func TestPermission_AReadOnlyTokenChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.token = lesser
	for _, path := range []string{machinePath + "config", machinePath + "status/current", "nodes/pve1/storage/local/content"} {
		w.get(path)
	}
	assert.Len(t, w.get("cluster/resources?type=vm"), 1)
	for _, tc := range []struct{ method, path, reason string }{
		{http.MethodPost, "nodes/pve1/qemu", "Permission check failed (/vms/1111, VM.Allocate)"},
		{http.MethodPut, machinePath + "config", "Permission check failed (/vms/1111, VM.Config.Options)"},
		{http.MethodPost, machinePath + "status/stop", "Permission check failed (/vms/1111, VM.PowerMgmt)"},
		{http.MethodDelete, machinePath, "Permission check failed (/vms/1111, VM.Allocate)"},
		{http.MethodGet, machinePath + "agent/network-get-interfaces", "Permission check failed (/vms/1111, VM.GuestAgent.Audit)"},
		{http.MethodPost, "nodes/pve1/storage/local/download-url", "Permission check failed (/storage/local, Datastore.AllocateTemplate)"},
		{http.MethodGet, "nodes/pve1/query-url-metadata?url=" + url.QueryEscape(w.iso), "Permission check failed (/, Sys.Modify)"},
		{http.MethodDelete, "nodes/pve1/storage/local/content/local:iso%2Ftalos.iso",
			"Permission check failed (/storage/local, Datastore.Allocate)"},
	} {
		form := recorded(t)
		if tc.method == http.MethodPut {
			form = url.Values{"name": {"other"}}
		}
		r := w.call(tc.method, tc.path, form)
		assert.Equal(t, http.StatusForbidden, r.code, tc.path)
		assert.Equal(t, tc.reason, r.reason)
	}
	assert.Equal(t, "running", w.status())
}

func TestPermission_EachMissingPrivilegeIsNamed(t *testing.T) {
	for privilege, object := range map[string]string{
		"VM.Allocate":             "/vms/1111",
		"VM.Config.CDROM":         "/vms/1111",
		"VM.Config.CPU":           "/vms/1111",
		"VM.Config.Cloudinit":     "/vms/1111",
		"VM.Config.Disk":          "/vms/1111",
		"VM.Config.HWType":        "/vms/1111",
		"VM.Config.Memory":        "/vms/1111",
		"VM.Config.Network":       "/vms/1111",
		"VM.Config.Options":       "/vms/1111",
		"SDN.Use":                 "/sdn/zones/localnetwork/vmbr0",
		"Datastore.AllocateSpace": "/storage/local-lvm",
	} {
		w := newWorld(t, func(c *Config) {
			others := slices.DeleteFunc(slices.Clone(Privileges), func(p string) bool { return p == privilege })
			c.Tokens = []Token{{ID: "root@pam!lab", Secret: "secret", Privileges: others}}
		})
		w.download("pve1")
		r := w.call(http.MethodPost, "nodes/pve1/qemu", recorded(t))
		assert.Equal(t, http.StatusForbidden, r.code, privilege)
		assert.Equal(t, "Permission check failed ("+object+", "+privilege+")", r.reason)
	}
}

// The provider reads the attributes of each disk. check_volume_access of Proxmox VE wants more for a disk than for an image.
func TestPermission_ADiskIsReadByWhomMayChangeIt(t *testing.T) {
	const (
		image = "nodes/pve1/storage/local/content/local:iso%2Ftalos.iso"
		disk  = "nodes/pve1/storage/local-lvm/content/local-lvm:vm-1111-disk-0"
	)
	for _, tc := range []struct {
		privileges []string
		path       string
		reason     string // "" if Proxmox VE answers
	}{
		{[]string{"Datastore.Allocate"}, image, ""},
		{[]string{"Datastore.Audit"}, image, ""},
		{[]string{"Datastore.AllocateSpace"}, image, ""},
		{[]string{"Datastore.AllocateTemplate"}, image, "Permission check failed (/storage/local, Datastore.AllocateSpace|Datastore.Audit)"},
		{[]string{"Datastore.Allocate"}, disk, ""},
		{[]string{"Datastore.Audit", "VM.Config.Disk"}, disk, ""},
		{readOnly, disk, "Permission check failed (/vms/1111, VM.Config.Disk)"},
		{[]string{"Datastore.Audit", "VM.Config.Disk"}, "nodes/pve1/storage/local/content/local:snippets%2Fa.yaml",
			"missing privileges to access local:snippets/a.yaml"},
		{[]string{"VM.Config.Disk", "Datastore.AllocateSpace"}, disk, "Permission check failed (/storage/local-lvm, Datastore.Audit)"},
	} {
		w := newWorld(t, func(c *Config) {
			c.Tokens = append(c.Tokens, Token{ID: "some@pve!t", Secret: "third", Privileges: tc.privileges})
		})
		w.create()
		w.token = "some@pve!t=third"
		r := w.call(http.MethodGet, tc.path, nil)
		assert.Equal(t, tc.reason, strings.TrimPrefix(r.reason, "OK"), "%s with %s", tc.path, tc.privileges)
	}
}

// The provider asks for pools and HA resources before it changes or moves a VM, and lets Proxmox VE write the cloud-init drive anew.
func TestRoutes_ThereAreNoPoolsAndNoHAResources(t *testing.T) {
	w := newWorld(t)
	w.create()
	assert.Empty(t, w.get("pools"))
	r := w.call(http.MethodGet, "cluster/ha/resources/vm:1111", nil)
	assert.Equal(t, http.StatusInternalServerError, r.code)
	assert.Equal(t, "no such resource 'vm:1111'", r.reason)
	assert.Equal(t, http.StatusOK, w.call(http.MethodPut, machinePath+"cloudinit", nil).code)
	assert.Equal(t, "Configuration file 'nodes/pve1/qemu-server/1999.conf' does not exist",
		w.call(http.MethodPut, "nodes/pve1/qemu/1999/cloudinit", nil).reason)
	w.token = lesser
	assert.Equal(t, "Permission check failed (/vms/1111, VM.Config.Cloudinit)", w.call(http.MethodPut, machinePath+"cloudinit", nil).reason)
}
