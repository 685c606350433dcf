package talos

import (
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/machines/proxmox"
	"github.com/slipway-platform/slipway/tests/mocks"
)

func TestTalosCluster_MakesTheSchematicOfTheDeclaredExtensions(t *testing.T) {
	r := up(t)
	assert.Equal(t, "customization:\n  systemExtensions:\n    officialExtensions:\n    - siderolabs/qemu-guest-agent\n",
		r.Only(t, typeSchematic).Input("schematic"))
	assert.Equal(t, []string{"schematic"}, r.Only(t, typeSchematic).ReplaceOnChanges, "another schematic has another id")
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
		assert.Contains(t, patches[1], "factory.talos.dev/nocloud-installer/"+schematicID+":v1.14.6")
		assert.Contains(t, patches[2], `"FROM":"user"`, "the user's patches override all others")
		assert.Equal(t, strings.Contains(patches[0].(string), "hostname: infra-cp-"), got["machineType"] == "controlplane")
		assert.Equal(t, "v1.12", got["talosVersion"])
		assert.Equal(t, "v1.36.6", got["kubernetesVersion"])
		assert.Equal(t, "https://10.25.11.10:6443", got["clusterEndpoint"])
	}
	assert.Equal(t, len(allMachines(t)), generated)
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
		"no cluster":                  {func(a *TalosClusterArgs) { a.Cluster = nil }, "cluster: is missing"},
		"no provider":                 {func(a *TalosClusterArgs) { a.CommandProvider = nil }, "commandProvider: is missing"},
		"no provider of the machines": {func(a *TalosClusterArgs) { a.Hypervisor = proxmox.Hypervisor{} }, "hypervisor.provider: is missing"},
		"no machines":                 {func(a *TalosClusterArgs) { a.Hypervisor = nil }, "hypervisor: is missing; pass what makes the machines"},
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
