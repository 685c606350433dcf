package talos

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/mocks"
)

func TestTalosCluster_DownloadsTheImageOncePerHost(t *testing.T) {
	r := up(t)
	images := r.OfType(typeISO)
	hosts := map[any]bool{}
	for _, image := range images {
		hosts[image.Input("nodeName")] = true
		assert.Equal(t, fmt.Sprintf("talos-infra-schema-v1.12.7-infra-%s-nocloud-amd64.iso", image.Input("nodeName")), image.Input("fileName"))
		assert.Equal(t, "https://factory.talos.dev/image/"+schematicID+"/v1.12.7/nocloud-amd64.iso", image.Input("url"))
		assert.Equal(t, "iso", image.Input("contentType"))
		assert.Equal(t, false, image.Input("overwrite"), "nothing is compared on later runs")
		assert.Equal(t, true, image.Input("overwriteUnmanaged"), "the file of an interrupted run is replaced")
		assert.ElementsMatch(t, []string{"url", "fileName"}, image.IgnoreChanges)
	}
	assert.Equal(t, map[any]bool{"pve1": true, "pve2": true, "pve3": true}, hosts)
	assert.Len(t, images, 3)
}

func TestTalosCluster_MakesTheSchematicOfTheDeclaredExtensions(t *testing.T) {
	r := up(t)
	assert.Equal(t, "customization:\n  systemExtensions:\n    officialExtensions:\n    - siderolabs/qemu-guest-agent\n",
		r.Only(t, typeSchematic).Input("schematic"))
	assert.Equal(t, []string{"schematic"}, r.Only(t, typeSchematic).ReplaceOnChanges, "another schematic has another id")
}

func TestTalosCluster_StartsMachinesFromTheImageOfTheirHost(t *testing.T) {
	r := up(t)
	require.Len(t, r.OfType(typeVM), len(machines(t)))
	for _, node := range machines(t) {
		vm := r.Resource(t, "infra-"+node.Name+"-vm")
		image := r.Resource(t, "infra-"+node.Host+"-iso")
		assert.Contains(t, vm.PropertyDependencies["cdrom"], image.URN)
		assert.Equal(t, node.Host, vm.Input("nodeName"))
		assert.EqualValues(t, node.VMID, vm.Input("vmId"))
		assert.Equal(t, string(node.MAC), vm.Input("networkDevices[0].macAddress"))
		assert.Equal(t, node.Address.String()+"/24", vm.Input("initialization.ipConfigs[0].ipv4.address"))
		assert.Equal(t, true, vm.Input("stopOnDestroy"))
		assert.Equal(t, true, vm.RPC.GetDeleteBeforeReplace(), "the old VM occupies the id and the addresses")
	}
}

func TestTalosCluster_HasNoPropertyThatTheProviderChangesOnEveryRun(t *testing.T) {
	for _, vm := range up(t).OfType(typeVM) {
		assert.Contains(t, vm.IgnoreChanges, "disks[0].speed", vm.Name)
		for _, stated := range []string{"cdrom.enabled", "cdrom.fileId", "cdrom.interface"} {
			assert.NotNil(t, vm.Input(stated), "%s: %s", vm.Name, stated)
		}
		assert.Nil(t, vm.Input("disks[0].fileId"), "importing a disk needs SSH to the host")
	}
}

// An existing VM with its CD drive at ide3 would be rebooted.
func TestTalosCluster_LeavesTheCDDriveOfAnExistingVMWhereItIs(t *testing.T) {
	for _, vm := range up(t).OfType(typeVM) {
		assert.Subset(t, vm.IgnoreChanges, []string{"cdrom.interface", "bootOrders"}, vm.Name)
		assert.Equal(t, "ide0", vm.Input("cdrom.interface"), "ide1 and ide3 of q35 boot since qemu-server 8.0.7, ide2 is the cloud-init drive")
		assert.Equal(t, []any{"scsi0", "ide0"}, vm.Input("bootOrders"))
	}
}

func TestTalosCluster_SortsTagsAsProxmoxDoes(t *testing.T) {
	vm := up(t).Resource(t, "infra-infra-cp-1-vm")
	assert.Equal(t, []any{"controlplane", "homelab", "infra", "slipway", "talos"}, vm.Input("tags"))
}

func TestTalosCluster_OpensTheAgentChannelExactlyWithItsExtension(t *testing.T) {
	for extensions, enabled := range map[string]bool{
		"siderolabs/qemu-guest-agent":                        true,
		"siderolabs/iscsi-tools siderolabs/util-linux-tools": false,
		"": false,
	} {
		r := up(t, func(c *cluster.Cluster) { c.Talos.Extensions = strings.Fields(extensions) })
		for _, vm := range r.OfType(typeVM) {
			assert.Equal(t, enabled, vm.Input("agent.enabled"), extensions)
		}
	}
}

func TestTalosCluster_GeneratesEachNodesConfigurationForItsRole(t *testing.T) {
	r := up(t, func(c *cluster.Cluster) { c.Talos.Patches.All = patch(`{"machine":{"env":{"FROM":"user"}}}`) })
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
		assert.Contains(t, patches[2], `"FROM":"user"`, "the user's patches override all others")
		assert.Equal(t, strings.Contains(patches[0].(string), "hostname: infra-cp-"), got["machineType"] == "controlplane")
		assert.Equal(t, "v1.12.7", got["talosVersion"])
		assert.Equal(t, "v1.35.8", got["kubernetesVersion"])
		assert.Equal(t, "https://10.25.11.10:6443", got["clusterEndpoint"])
	}
	assert.Equal(t, len(machines(t)), generated)
}

func TestTalosCluster_TheTalosconfigNamesEveryNodeAndEveryControlPlane(t *testing.T) {
	for _, call := range up(t).Calls() {
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
		"no cluster":  {func(a *TalosClusterArgs) { a.Cluster = nil }, "cluster: is missing"},
		"no provider": {func(a *TalosClusterArgs) { a.CommandProvider = nil }, "commandProvider: is missing"},
		"a patch Talos refuses": {func(a *TalosClusterArgs) {
			a.Cluster.Talos.Patches.Workers = patch(`{"machine":{"kubelett":{}}}`)
		}, "talos.patches.workers[0]"},
		"manifest without a name": {func(a *TalosClusterArgs) {
			a.InlineManifests = []InlineManifest{{Contents: pulumi.String("x")}}
		}, "inlineManifests[0]: has no name"},
		"manifest without text": {func(a *TalosClusterArgs) {
			a.InlineManifests = []InlineManifest{{Name: "x"}}
		}, "inlineManifests[0]: has no name or no contents"},
		"two manifests of a name": {func(a *TalosClusterArgs) {
			a.InlineManifests = []InlineManifest{{Name: "x", Contents: pulumi.String("x")}, {Name: "x", Contents: pulumi.String("y")}}
		}, "inlineManifests[1]: x is taken"},
		"a joining worker Talos refuses": {func(a *TalosClusterArgs) {
			a.Cluster.Workers.Join = cluster.JoinAfterGate
			workers(a.Cluster).Nodes[1].Patches = patch(`{"machine":{"kubelett":{}}}`)
		}, "nodePools[1].nodes[1].patches[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			r := answers(&mocks.Recorder{})
			err := r.Run(func(ctx *pulumi.Context) error {
				args := arguments(t)
				if err := providers(ctx, args); err != nil {
					return err
				}
				test.change(args)
				_, err := NewTalosCluster(ctx, "infra", args)
				return err
			})
			require.ErrorContains(t, err, test.want)
			require.ErrorContains(t, err, `TalosCluster "infra": `)
			assert.Empty(t, r.Find(func(reg mocks.Registration) bool { return !strings.HasPrefix(reg.Type, "pulumi:") }))
		})
	}
}

// patch is a list of one patch.
func patch(text string) []cluster.Patch { return []cluster.Patch{cluster.Patch(text)} }
