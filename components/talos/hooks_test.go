package talos

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters"
	"github.com/slipway-platform/slipway/tests/mocks"
)

// typeStash is the engine's own resource that stores a value in the state.
const typeStash = "pulumi:index:Stash"

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

func TestTalosCluster_MigratesAMachineInsteadOfReplacingIt(t *testing.T) {
	for _, vm := range up(t).OfType(typeVM) {
		assert.Equal(t, true, vm.Input("migrate"), vm.Name)
		assert.Contains(t, vm.RPC.GetHooks().GetBeforeUpdate(), strings.TrimSuffix(vm.Name, "-vm")+"-move")
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

// Otherwise an up that refuses a move would leave a part of the change in the state.
func TestTalosCluster_RemembersTheHostsBeforeItDownloadsImagesAndShowsConfigurations(t *testing.T) {
	r := up(t)
	stash := r.Resource(t, "infra-hosts")
	for _, node := range machines(t) {
		assert.Equal(t, node.Host, stash.Input("input."+node.Name))
	}
	assert.Equal(t, []string{"infra-hosts"}, stash.RPC.GetHooks().GetBeforeUpdate())
	for _, later := range slices.Concat(r.OfType(typeISO), r.OfType(typeMachineConfiguration)) {
		assert.True(t, r.After(later, stash), later.Name)
	}
	for _, hook := range r.Hooks() {
		compares := hook.Name == "infra-hosts" || hook.Name == "infra-retire" ||
			strings.HasSuffix(hook.Name, "-move") || strings.HasSuffix(hook.Name, "-reboot")
		assert.Equal(t, compares, hook.OnDryRun,
			"%s: a preview is offline, and shows which moves and removals are refused and what reboots", hook.Name)
	}
}

// stored returns what the state remembers of a cluster.
func stored(c *cluster.Cluster) resource.PropertyValue {
	hosts := resource.PropertyMap{}
	for _, node := range c.Machines() {
		hosts[resource.PropertyKey(node.Name)] = resource.NewProperty(node.Host)
	}
	return resource.NewProperty(hosts)
}

func TestRefuseMoves_NamesThePinOfEveryMachineThatANewProxmoxNodeWouldMove(t *testing.T) {
	unpin := func(c *cluster.Cluster) {
		for i := range c.NodePools[1].Nodes {
			c.NodePools[1].Nodes[i].Host = ""
		}
	}
	grow := func(c *cluster.Cluster) {
		c.Proxmox.Nodes = append([]string{"pve0"}, c.Proxmox.Nodes...)
		c.NodePools[1].Hosts = nil
	}
	before := clusters.Infra(t, unpin)
	after := clusters.Infra(t, unpin, grow)
	err := refuseMoves(after.Machines(), stored(before))
	assert.EqualError(t, err,
		"nodePools[1].nodes[0]: infra-worker-1 was placed on pve1, and without a host it would be placed on pve0 now; "+
			"write host: pve1 at nodePools[1].nodes[0] to keep it there, or host: pve0 to move it\n"+
			"nodePools[1].nodes[1]: infra-worker-2 was placed on pve2, and without a host it would be placed on pve1 now; "+
			"write host: pve2 at nodePools[1].nodes[1] to keep it there, or host: pve1 to move it")

	pinned := clusters.Infra(t, grow, func(c *cluster.Cluster) {
		c.NodePools[1].Nodes[0].Host = "pve1" // stays
		c.NodePools[1].Nodes[1].Host = "pve3" // moves
	})
	assert.NoError(t, refuseMoves(pinned.Machines(), stored(before)))
	assert.NoError(t, refuseMoves(before.Machines(), stored(before)))
	assert.NoError(t, refuseMoves(before.Machines(), resource.NewNullProperty()))
	assert.NoError(t, refuseMoves(before.Machines(), resource.NewProperty(resource.PropertyMap{})), "new machines")
}

// A refresh after a migration by hand writes the new Proxmox node into the state.
func TestMovedFrom_IsTheNodeInTheState(t *testing.T) {
	node := machines(t)[0]
	for from, moves := range map[string]bool{node.Host: false, "pve9": true} {
		got, moved := movedFrom(resource.PropertyMap{"nodeName": resource.NewProperty(from)}, node)
		assert.Equal(t, from, got)
		assert.Equal(t, moves, moved)
	}
	_, moved := movedFrom(nil, node)
	assert.False(t, moved)
}
