package talos

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// A second checkout with the same stack file must not touch the first one's images: the provider replaces files that are not in the
// state.
func TestTalosCluster_RegistersNothingOnProxmoxIfOneOfItsVMsIsTaken(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, http.MethodGet, r.Method, "%s", r.URL)
		data := map[string]string{
			"/api2/json/version":                             `{"version":"8.4.1"}`,
			"/api2/json/cluster/resources":                   `[{"vmid":1122,"node":"pve2","type":"qemu"}]`, // the last machine
			"/api2/json/nodes/pve2/qemu/1122/config":         `{"name":"mail"}`,
			"/api2/json/nodes/pve2/qemu/1122/status/current": `{"status":"running"}`,
		}[r.URL.Path]
		if data == "" {
			data = `{"shared":0}`
		}
		w.Write([]byte(`{"data":` + data + `}`)) //nolint:errcheck // the client notices
	}))
	defer server.Close()
	api, _ := emptyProxmox(t)
	r := answers(&mocks.Recorder{RunHooks: true})
	err := r.Run(program(arguments(t, api, func(c *cluster.Cluster) { c.Proxmox.Endpoint = server.URL + "/" }), nil))
	require.ErrorContains(t, err, `vmId: 1122 is taken by "mail" on Proxmox node pve2`)
	for _, kind := range []string{typeSecrets, typeSchematic, typeISO, typeVM} {
		assert.Empty(t, r.OfType(kind), kind)
	}
}

// Otherwise a run that refuses a move would leave a part of the change in the state.
func TestTalosCluster_RemembersTheHostsBeforeItDownloadsImagesAndShowsConfigurations(t *testing.T) {
	r := up(t)
	stash := r.Resource(t, "infra-hosts")
	for _, node := range allMachines(t) {
		assert.Equal(t, node.Host, stash.Input("input."+node.Name))
	}
	assert.Equal(t, []string{"infra-hosts"}, stash.RPC.GetHooks().GetBeforeUpdate())
	for _, later := range slices.Concat(r.OfType(typeISO), r.OfType(typeMachineConfiguration)) {
		assert.True(t, r.After(later, stash), later.Name)
	}
	for _, hook := range r.Hooks() {
		compares := hook.Name == "infra-hosts" || hook.Name == "infra-retire" || hook.Name == "infra-turns-returning" ||
			strings.HasSuffix(hook.Name, "-disks") || strings.HasSuffix(hook.Name, "-move") || strings.HasSuffix(hook.Name, "-reboot")
		assert.Equal(t, compares, hook.OnDryRun,
			"%s: a preview is offline, and shows which moves and removals are refused and what reboots", hook.Name)
	}
}
