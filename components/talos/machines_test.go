package talos

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/mocks"
)

func TestTalosCluster_DownloadsTheImageOncePerHost(t *testing.T) {
	r := up(t, nil)
	images := r.OfType(typeISO)
	hosts := map[any]bool{}
	for _, image := range images {
		hosts[image.Input("nodeName")] = true
		assert.Equal(t, "talos-infra-schema-v1.12.7-infra-nocloud-amd64.iso", image.Input("fileName"))
		assert.Equal(t, "https://factory.talos.dev/image/"+schematicID+"/v1.12.7/nocloud-amd64.iso", image.Input("url"))
		assert.Equal(t, "iso", image.Input("contentType"))
		assert.Equal(t, false, image.Input("overwrite"), "nothing is compared on later runs")
		assert.Equal(t, true, image.Input("overwriteUnmanaged"), "what an interrupted run left behind is replaced")
		assert.ElementsMatch(t, []string{"url", "fileName"}, image.IgnoreChanges)
	}
	assert.Equal(t, map[any]bool{"pve1": true, "pve2": true, "pve3": true}, hosts)
	assert.Len(t, images, 3)
}

func TestTalosCluster_MakesTheSchematicOfTheDeclaredExtensions(t *testing.T) {
	r := up(t, nil)
	assert.Equal(t, "customization:\n  systemExtensions:\n    officialExtensions:\n    - siderolabs/qemu-guest-agent\n",
		r.Only(t, typeSchematic).Input("schematic"))
}

func TestTalosCluster_StartsMachinesFromTheImageOfTheirHost(t *testing.T) {
	r := up(t, nil)
	require.Len(t, r.OfType(typeVM), len(arguments().Nodes))
	for _, node := range arguments().Nodes {
		vm := r.Resource(t, "infra-"+node.Name+"-vm")
		image := r.Resource(t, "infra-"+node.Host+"-iso")
		assert.Contains(t, vm.PropertyDependencies["cdrom"], image.URN)
		assert.Equal(t, node.Host, vm.Input("nodeName"))
		assert.EqualValues(t, node.VMID, vm.Input("vmId"))
		assert.Equal(t, strings.ToUpper(node.MAC), vm.Input("networkDevices[0].macAddress"))
		assert.Equal(t, node.Address.String()+"/24", vm.Input("initialization.ipConfigs[0].ipv4.address"))
		assert.Equal(t, []any{"scsi0", "ide3"}, vm.Input("bootOrders"))
		assert.Equal(t, true, vm.Input("stopOnDestroy"))
		assert.Equal(t, true, vm.RPC.GetDeleteBeforeReplace(), "id and addresses are taken until the old one is gone")
	}
}

func TestTalosCluster_IsImmuneToTheProvidersPerpetualChange(t *testing.T) {
	for _, vm := range up(t, nil).OfType(typeVM) {
		assert.Contains(t, vm.IgnoreChanges, "disks[0].speed", vm.Name)
		for _, stated := range []string{"cdrom.enabled", "cdrom.fileId", "cdrom.interface"} {
			assert.NotNil(t, vm.Input(stated), "%s: %s", vm.Name, stated)
		}
		assert.Nil(t, vm.Input("disks[0].fileId"), "importing a disk needs SSH to the host")
	}
}

func TestTalosCluster_KeepsTagsAsProxmoxDoes(t *testing.T) {
	vm := up(t, nil).Resource(t, "infra-infra-cp-1-vm")
	assert.Equal(t, []any{"controlplane", "homelab", "infra", "slipway", "talos"}, vm.Input("tags"))
}

func TestTalosCluster_OpensTheAgentChannelExactlyWithItsExtension(t *testing.T) {
	for extensions, enabled := range map[string]bool{
		"siderolabs/qemu-guest-agent":                        true,
		"siderolabs/iscsi-tools siderolabs/util-linux-tools": false,
		"": false,
	} {
		r := up(t, func(args *TalosClusterArgs) { args.Extensions = strings.Fields(extensions) })
		for _, vm := range r.OfType(typeVM) {
			assert.Equal(t, enabled, vm.Input("agent.enabled"), extensions)
		}
	}
}

func TestTalosCluster_GeneratesEachNodesConfigurationForItsRole(t *testing.T) {
	r := up(t, func(args *TalosClusterArgs) {
		args.Patches.All = []string{"machine:\n  env:\n    FROM: user\n"}
	})
	generated := 0
	for _, call := range r.Calls() {
		if call.Token != callConfiguration {
			continue
		}
		generated++
		got := call.Args.Mappable()
		patches := got["configPatches"].([]any)
		require.Len(t, patches, 3)
		assert.Contains(t, patches[1], "factory.talos.dev/nocloud-installer/"+schematicID+":v1.12.7")
		assert.Contains(t, patches[2], "FROM: user", "the user has the last word")
		assert.Equal(t, strings.Contains(patches[0].(string), "hostname: infra-cp-"), got["machineType"] == "controlplane")
		assert.Equal(t, "v1.12.7", got["talosVersion"])
		assert.Equal(t, "v1.35.8", got["kubernetesVersion"])
		assert.Equal(t, "https://10.25.11.10:6443", got["clusterEndpoint"])
	}
	assert.Equal(t, len(arguments().Nodes), generated)
}

func TestTalosCluster_GivesTalosctlEveryNodeAndEveryControlPlane(t *testing.T) {
	for _, call := range up(t, nil).Calls() {
		if call.Token != callTalosconfig {
			continue
		}
		got := call.Args.Mappable()
		assert.Equal(t, []any{"10.25.11.11", "10.25.11.12", "10.25.11.13"}, got["endpoints"])
		assert.ElementsMatch(t, []any{"10.25.11.11", "10.25.11.12", "10.25.11.13", "10.25.11.21", "10.25.11.22"}, got["nodes"])
		return
	}
	t.Fatal("no talosconfig was generated")
}

func TestTalosCluster_RegistersNothingForInvalidArguments(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*TalosClusterArgs)
		want   string
	}{
		"no name":                  {func(a *TalosClusterArgs) { a.ClusterName = "" }, "clusterName: empty"},
		"factory that is no URL":   {func(a *TalosClusterArgs) { a.Factory = "factory.talos.dev" }, `factory: "factory.talos.dev" is not an https URL`},
		"no provider":              {func(a *TalosClusterArgs) { a.CommandProvider = nil }, "commandProvider: nil"},
		"no nodes":                 {func(a *TalosClusterArgs) { a.Nodes = nil }, "nodes: 0 control planes"},
		"even control planes":      {func(a *TalosClusterArgs) { a.Nodes = a.Nodes[:3] }, "nodes: 2 control planes; an odd number"},
		"two nodes of one address": {func(a *TalosClusterArgs) { a.Nodes[2].Address = a.Nodes[1].Address }, "nodes[2] infra-cp-2: address 10.25.11.11 is nodes[1] infra-cp-1's already"},
		"two nodes of one MAC":     {func(a *TalosClusterArgs) { a.Nodes[2].MAC = a.Nodes[1].MAC }, "nodes[2] infra-cp-2: mac bc:24:11:00:01:0b"},
		"two nodes of one VM id":   {func(a *TalosClusterArgs) { a.Nodes[2].VMID = 1111 }, "nodes[2] infra-cp-2: vmId 1111"},
		"node on the VIP":          {func(a *TalosClusterArgs) { a.Nodes[0].Address = a.VIP }, "nodes[0] infra-worker-1: address 10.25.11.10 is vip's already"},
		"node outside the network": {func(a *TalosClusterArgs) { a.NodeCIDR = prefix("10.25.12.0/24") }, "nodes[0] infra-worker-1: address: 10.25.11.21 is not in nodeCIDR 10.25.12.0/24"},
		"overlapping ranges":       {func(a *TalosClusterArgs) { a.ServiceCIDR = prefix("10.244.8.0/24") }, "podCIDR: 10.244.0.0/16 overlaps serviceCIDR 10.244.8.0/24"},
		"a patch Talos refuses":    {func(a *TalosClusterArgs) { a.Patches.Workers = []string{"machine: {kubelett: {}}"} }, "talos.patches.workers[0]"},
		"versions that do not fit": {func(a *TalosClusterArgs) { a.KubernetesVersion = "v1.29.0" }, "kubernetes version v1.29.0"},
	} {
		t.Run(name, func(t *testing.T) {
			r := answers(&mocks.Recorder{})
			require.ErrorContains(t, r.Run(program(test.change, nil)), test.want)
			assert.Empty(t, r.Find(func(reg mocks.Registration) bool { return !strings.HasPrefix(reg.Type, "pulumi:") }))
		})
	}
}

func TestTalosCluster_ReportsEveryInvalidArgument(t *testing.T) {
	err := answers(&mocks.Recorder{}).Run(program(func(a *TalosClusterArgs) {
		a.ClusterName, a.Nodes[0].Cores, a.Nodes[3].Host = "", 0, ""
	}, nil))
	for _, want := range []string{"clusterName", "nodes[0] infra-worker-1: cores", "nodes[3] infra-cp-3: host"} {
		require.ErrorContains(t, err, want)
	}
}
