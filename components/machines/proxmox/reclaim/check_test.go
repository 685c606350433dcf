package reclaim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// proxmoxAPI answers requests, by method and path, with the given data, and records those that are no GET.
func proxmoxAPI(t *testing.T, answers map[string]string) (api API, changes *[]string) {
	t.Helper()
	changes = &[]string{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			*changes = append(*changes, r.Method+" "+r.URL.RequestURI())
		}
		data, found := answers[r.Method+" "+r.URL.Path]
		if !found {
			http.Error(w, "no such thing", http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, `{"data":%s}`, data)
	}))
	t.Cleanup(server.Close)
	return API{Endpoint: server.URL, Token: "root@pam!slipway=s3cret", Insecure: true}, changes
}

// newCluster is a cluster of two VMs on two Proxmox nodes.
var newCluster = Cluster{
	VMs: []VM{wanted, {Host: "pve2", ID: 1112, Name: "infra-cp-2", Description: wanted.Description, Address: "10.25.11.12"}},
	ISO: "local",
	Hosts: []Host{
		{Named: Named{"proxmox.nodes[0]", "pve1"}, Disks: disks("local-lvm"), Bridges: bridges("vmbr0")},
		{Named: Named{"proxmox.nodes[1]", "pve2"}, Disks: disks("local-lvm"), Bridges: bridges("vmbr0")},
	},
}

func disks(name string) []Named   { return []Named{{"proxmox.datastores.disks", name}} }
func bridges(name string) []Named { return []Named{{"proxmox.bridge", name}} }

// check returns the error and the warnings of a check of a cluster.
func check(t *testing.T, answers map[string]string, cluster Cluster) (warnings []string, err error) {
	t.Helper()
	api, changes := proxmoxAPI(t, answers)
	err = Check(t.Context(), api, cluster, func(line string) { warnings = append(warnings, line) })
	assert.Empty(t, *changes)
	return warnings, err
}

// silently fails a test that a warning comes in.
func silently(t *testing.T) func(string) {
	t.Helper()
	return func(line string) { assert.Fail(t, line) }
}

// Lists of storages, as Proxmox VE answers them.
const (
	localStorage = `{"storage":"local","type":"dir","content":"iso,vztmpl,backup","shared":0,"enabled":1,"active":1}`
	lvmStorage   = `{"storage":"local-lvm","type":"lvmthin","content":"images,rootdir","shared":0,"enabled":1,"active":1}`
	zfsStorage   = `{"storage":"local-zfs","type":"zfspool","content":"rootdir,images","shared":0,"enabled":1,"active":1}`
	nfsStorage   = `{"storage":"nfs-iso","type":"nfs","content":"iso","shared":"1","enabled":"1","active":"1"}`
)

// emptyHost returns the answers of a Proxmox VE without VMs.
func emptyHost(version string) map[string]string {
	answers := map[string]string{
		"GET /api2/json/version":           `{"version":"` + version + `"}`,
		"GET /api2/json/cluster/resources": `[]`,
		"GET /api2/json/nodes": `[{"node":"pve3","status":"offline"},{"node":"pve1","status":"online"},
			{"node":"pve2","status":"online"}]`,
	}
	for _, host := range []string{"pve1", "pve2"} {
		answers["GET /api2/json/nodes/"+host+"/storage"] = "[" + localStorage + "," + lvmStorage + "," + nfsStorage + "]"
		answers["GET /api2/json/nodes/"+host+"/network"] = `[{"iface":"vmbr0","type":"bridge","active":1}]`
	}
	return answers
}

func TestCheck_AcceptsSupportedVersionsWithoutVMs(t *testing.T) {
	for _, version := range []string{"8.0.3", "8.4.1", "9.0.10", "10.1.0"} {
		api, _ := proxmoxAPI(t, emptyHost(version))
		assert.NoError(t, Check(t.Context(), api, newCluster, silently(t)), version)
	}
}

func TestCheck_RefusesAVersionThatIsTooOld(t *testing.T) {
	api, changes := proxmoxAPI(t, emptyHost("7.4-17"))
	const says = "proxmox.endpoint: Proxmox VE 7.4-17 is too old; upgrade it to 8.0 or later"
	assert.EqualError(t, Check(t.Context(), api, newCluster, silently(t)), says)
	assert.EqualError(t, Reclaim(t.Context(), api, wanted), says)
	assert.Empty(t, *changes)
}

func TestCheck_NamesEveryVMWhoseIDIsTakenAndChangesNothing(t *testing.T) {
	answers := emptyHost("8.4.1")
	answers["GET /api2/json/cluster/resources"] = `[{"vmid":1111,"node":"pve1","type":"qemu"},
		{"vmid":1112,"node":"pve3","type":"qemu"},{"vmid":7,"node":"pve1","type":"qemu"}]`
	answers["GET /api2/json/nodes/pve1/qemu/1111/config"] = `{"name":"mail"}`
	answers["GET /api2/json/nodes/pve3/qemu/1112/config"] = `{"name":"web"}`
	answers["GET /api2/json/nodes/pve1/qemu/1111/status/current"] = `{"status":"running"}`
	answers["GET /api2/json/nodes/pve3/qemu/1112/status/current"] = `{"status":"stopped"}`
	api, changes := proxmoxAPI(t, answers)
	assert.EqualError(t, Check(t.Context(), api, newCluster, silently(t)),
		`vmId: 1111 is taken by "mail" on Proxmox node pve1; choose another id, or remove that VM`+"\n"+
			`vmId: 1112 is taken by "web" on Proxmox node pve3; choose another id, or remove that VM`)
	assert.Empty(t, *changes)
}

// Proxmox has no configuration of a VM with a container's id: it answers 500, as for a VM that was created just now.
func TestCheck_TakesAContainerForNoVM(t *testing.T) {
	answers := emptyHost("8.4.1")
	answers["GET /api2/json/cluster/resources"] = `[
		{"id":"lxc/1111","vmid":1111,"node":"pve1","type":"lxc","name":"infra-cp-1","status":"running"},
		{"id":"lxc/1112","vmid":1112,"node":"pve3","type":"lxc","status":"unknown"}]`
	api, changes := proxmoxAPI(t, answers)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, errors.New("it waits for a VM"))
	defer cancel()
	const first = `vmId: 1111 is taken by the container "infra-cp-1" on Proxmox node pve1; choose another id, or remove that container`
	assert.EqualError(t, Check(ctx, api, newCluster, silently(t)), first+"\n"+
		`vmId: 1112 is taken by the container "" on Proxmox node pve3; choose another id, or remove that container`)
	require.EqualError(t, Reclaim(ctx, api, wanted), first)

	require.NoError(t, Remove(ctx, &Leftovers{API: api, VMs: newCluster.VMs}, silently(t)))
	_, _, err := Power(ctx, api, wanted.ID)
	require.EqualError(t, err, "VM 1111 does not exist")
	assert.Empty(t, *changes)
}

// A second checkout with the same stack file sees the VMs of the first one: same ids, names and descriptions.
func TestCheck_RefusesTheMachinesOfAnotherCheckout(t *testing.T) {
	h := &fakeHost{vm: leftover(), maintenance: keeps["configured"]}
	err := checkVMs(t.Context(), h, newCluster.VMs)
	require.ErrorContains(t, err, "VM 1111 (infra-cp-1) on Proxmox node pve1 is not in this stack's state")
	require.ErrorContains(t, err, "use the backend and stack whose state has it")
	assert.Empty(t, h.done)

	h.vm.status = "stopped"
	require.ErrorContains(t, checkVMs(t.Context(), h, newCluster.VMs), "it is off; start it")
	assert.Empty(t, h.done, "it is not started")
}

func TestCheck_LeavesAVMInMaintenanceModeToReclaim(t *testing.T) {
	h := &fakeHost{vm: leftover(), maintenance: answers}
	require.NoError(t, checkVMs(t.Context(), h, newCluster.VMs))
	assert.Empty(t, h.done)
}

func TestEject_TakesOutImagesAndNothingElse(t *testing.T) {
	const path = "/api2/json/nodes/pve1/qemu/1111/config"
	for config, want := range map[string][]string{
		`{"ide0":"local:iso/talos.iso,media=cdrom,size=100M","ide2":"local-lvm:vm-1111-cloudinit,media=cdrom",
		  "scsi0":"local-lvm:vm-1111-disk-0,size=20G","cores":4}`: {
			"PUT " + path + "?ide0=none%2Cmedia%3Dcdrom"},
		`{"ide3":"local:iso/talos.iso,media=cdrom","boot":"order=scsi0;ide3"}`: {"PUT " + path + "?ide3=none%2Cmedia%3Dcdrom"},
		`{"ide0":"none,media=cdrom"}`:                                          {},
	} {
		api, changes := proxmoxAPI(t, map[string]string{"GET " + path: config, "PUT " + path: "null"})
		require.NoError(t, Eject(t.Context(), api, "pve1", 1111))
		assert.Equal(t, want, *changes)
	}
	api, _ := proxmoxAPI(t, nil)
	assert.ErrorContains(t, Eject(t.Context(), api, "pve1", 1111), "500")
}
