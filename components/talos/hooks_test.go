package talos

import (
	"net/http"
	"net/http/httptest"
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
			"/api2/json/cluster/resources":                   `[{"vmid":1122,"node":"pve2"}]`, // the last machine
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

func TestTalosCluster_DownloadsTheImageOnceToASharedStorage(t *testing.T) {
	r := up(t, func(c *cluster.Cluster) { c.Proxmox.Datastores.ISO, c.Proxmox.Datastores.ISOShared = "nfs-iso", true })
	image := r.Only(t, typeISO)
	assert.Equal(t, "talos-infra-schema-v1.12.7-infra-nocloud-amd64.iso", image.Input("fileName"))
	assert.ElementsMatch(t, []string{"url", "fileName", "nodeName"}, image.IgnoreChanges, "another first machine does not replace it")
	for _, vm := range r.OfType(typeVM) {
		assert.Contains(t, vm.PropertyDependencies["cdrom"], image.URN, vm.Name)
	}
}
