package talos

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// proxmoxToken is the token of the Proxmox VE API.
const proxmoxToken = "root@pam!slipway=0c5a8d6e-1111-2222-3333-444455556666"

// emptyProxmox starts a Proxmox API without VMs and counts its requests, all of which only read.
func emptyProxmox(t *testing.T) (api func(*cluster.Cluster), requests *atomic.Int32) {
	t.Helper()
	requests = &atomic.Int32{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		var data string
		switch path := r.URL.Path; {
		case r.Method != http.MethodGet:
			http.Error(w, "no such thing", http.StatusInternalServerError)
			return
		case path == "/api2/json/version":
			data = `{"version":"8.4.1"}`
		case path == "/api2/json/cluster/resources", strings.HasSuffix(path, "/tasks"),
			strings.HasSuffix(path, "/content"):
			data = `[]`
		case path == "/api2/json/nodes":
			data = `[{"node":"pve1","status":"online"},{"node":"pve2","status":"online"},{"node":"pve3","status":"online"}]`
		case strings.HasSuffix(path, "/network"):
			data = `[{"iface":"vmbr0"}]`
		case strings.HasSuffix(path, "/storage"):
			const settings = `"enabled":1,"active":1,"shared":0`
			data = `[{"storage":"local","content":"iso",` + settings + `},{"storage":"local-lvm","content":"images",` + settings + `}]`
		default:
			http.NotFound(w, r)
			return
		}
		w.Write([]byte(`{"data":` + data + `}`)) //nolint:errcheck // the client notices
	}))
	t.Cleanup(server.Close)
	return func(c *cluster.Cluster) {
		c.Proxmox.Endpoint, c.Proxmox.Insecure = server.URL+"/", true
		c.ProxmoxAPIToken = cluster.NewSecret(proxmoxToken)
	}, requests
}

// factory starts an image factory and counts its connections. Its certificate is not trusted, so that nothing else comes.
func factory(t *testing.T) (address string, connections *atomic.Int32) {
	t.Helper()
	connections = &atomic.Int32{}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, connections
}

// leftovers returns the hooks that look for a leftover VM.
func leftovers(r *mocks.Recorder) []mocks.Hook {
	return slices.DeleteFunc(r.Hooks(), func(hook mocks.Hook) bool { return !strings.HasSuffix(hook.Name, "-reclaim") })
}

func TestTalosCluster_LooksForALeftoverBeforeEachVMAndForAllBeforeTheSecrets(t *testing.T) {
	api, requests := emptyProxmox(t)
	r := answers(&mocks.Recorder{RunHooks: true})
	args := arguments(t, api)
	address, connections := factory(t)
	args.Cluster.Talos.Factory = address
	require.NoError(t, r.Run(program(args, nil)))

	bound := map[string]bool{}
	for _, reg := range r.Resources() {
		if reg.Type == typeSecrets {
			assert.Equal(t, []string{"infra-check"}, reg.BeforeCreate)
			continue
		}
		if reg.Type == typeISO {
			assert.Equal(t, []string{reg.Name + "-download"}, reg.BeforeCreate, "it makes room for the file")
			continue
		}
		if reg.Type != typeVM && reg.Type != typeApply && reg.Name != "infra-upgrade" {
			assert.Empty(t, reg.BeforeCreate, "%s %s", reg.Type, reg.Name)
		}
		if reg.Type != typeVM {
			continue
		}
		require.Equal(t, []string{strings.TrimSuffix(reg.Name, "-vm") + "-reclaim"}, reg.BeforeCreate)
		bound[reg.BeforeCreate[0]] = true
		assert.Empty(t, reg.PlainPaths(proxmoxToken), reg.Name)
	}
	assert.Len(t, bound, len(allMachines(t)))
	assert.Len(t, leftovers(r), len(allMachines(t)))
	// The version and the list of VMs, or of downloads, deletions and images; before all, also the Proxmox nodes, and the storages and bridges
	// of each.
	const all, eachVM, eachImage, hosts = 3, 2, 4, 3
	assert.EqualValues(t, all+2*hosts+eachImage*hosts+eachVM*len(allMachines(t)), requests.Load())
	assert.EqualValues(t, hosts, connections.Load(), "the image factory is asked for the image of each")
}

func TestTalosCluster_CreatesNoVMIfTheCheckForALeftoverFails(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "out of order", http.StatusInternalServerError)
	}))
	defer server.Close()
	api, _ := emptyProxmox(t)
	r := answers(&mocks.Recorder{RunHooks: true})
	err := r.Run(program(arguments(t, api, func(c *cluster.Cluster) { c.Proxmox.Endpoint = server.URL + "/" }), nil))
	require.ErrorContains(t, err, "500 Internal Server Error")
	assert.NotContains(t, err.Error(), proxmoxToken)
	assert.Empty(t, r.OfType(typeVM))
	assert.Empty(t, r.OfType(typeCommand))
}

func TestTalosCluster_LooksForNoLeftoverInAPreview(t *testing.T) {
	api, requests := emptyProxmox(t)
	r := answers(&mocks.Recorder{RunHooks: true, DryRun: true})
	require.NoError(t, r.Run(program(arguments(t, api), nil)))
	assert.Len(t, leftovers(r), len(allMachines(t)))
	assert.Zero(t, requests.Load())
}

func TestTalosCluster_ExistsTwiceInOneProgramWithItsHooks(t *testing.T) {
	api, _ := emptyProxmox(t)
	r := answers(&mocks.Recorder{})
	require.NoError(t, r.Run(program(arguments(t, api), func(ctx *pulumi.Context, _ *TalosCluster) error {
		args := arguments(t, api)
		if err := providers(ctx, args); err != nil {
			return err
		}
		_, err := NewTalosCluster(ctx, "apps", args)
		return err
	})))
	assert.Len(t, leftovers(r), 2*len(allMachines(t)))
	assert.Len(t, r.Hooks(), 2*(12*len(allMachines(t))+5+4), "their names are unique")
}
