package talos

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/mocks"
)

func TestTalosCluster_ShowsEachNodesConfiguration(t *testing.T) {
	for _, preview := range []bool{false, true} {
		r := answers(&mocks.Recorder{DryRun: preview})
		require.NoError(t, r.Run(program(func(args *TalosClusterArgs) {
			args.Sysctls = map[string]string{"vm.max_map_count": "262144"}
			args.Nodes[0].Taints = map[string]string{"dedicated": "storage:NoSchedule"}
		}, nil)))
		for _, node := range arguments().Nodes {
			shown := r.Resource(t, "infra-"+node.Name+"-configuration")
			assert.Equal(t, typeMachineConfiguration, shown.Type)
			assert.False(t, shown.Custom)
			assert.Equal(t, r.Only(t, typeTalosCluster).URN, shown.Parent)
			assert.Equal(t, string(node.Role), shown.Input("machine.type"))
			assert.Equal(t, node.Name, shown.Input("HostnameConfig.hostname"))
			assert.Equal(t, node.Address.String()+"/24", shown.Input("machine.network.interfaces[0].addresses[0]"))
			assert.Equal(t, []any{"siderolabs/qemu-guest-agent"}, shown.Input("extensions"))
			assert.Equal(t, "factory.talos.dev/nocloud-installer/(schematic):v1.12.7", shown.Input("machine.install.image"))
			assert.Equal(t, map[string]any{"vm.max_map_count": "262144"}, shown.Input("machine.sysctls"))
			assert.Equal(t, "(from the machine secrets)", shown.Input("machine.token"))
		}
		assert.NotNil(t, r.Resource(t, "infra-infra-worker-1-configuration").Input("machine.nodeTaints"))
	}
}

func TestTalosCluster_ShowsNothingOfTheUsersThatMayBeSecret(t *testing.T) {
	r := up(t, func(args *TalosClusterArgs) {
		args.Patches.All = []string{"machine: {registries: {config: {registry: {auth: {username: flux, password: " + keyMaterial + "}}}}}"}
		args.Nodes[0].Patches = []string{"apiVersion: v1alpha1\nkind: ExtensionServiceConfig\nname: tailscale\nenvironment: [TS_AUTHKEY=" + keyMaterial + "]\n"}
	})
	for _, reg := range r.Resources() {
		assert.Empty(t, reg.PlainPaths(keyMaterial), "%s %s", reg.Type, reg.Name)
	}
	shown := r.Resource(t, "infra-infra-worker-1-configuration")
	password := "machine.registries.config.registry.auth.password"
	assert.Equal(t, keyMaterial, shown.Input(password), "the engine has it, encrypted, to tell whether it changed")
	assert.True(t, shown.SecretInput(password))
	assert.False(t, shown.SecretInput("machine.type"), "the rest stays readable")
	assert.NotNil(t, shown.Input("ExtensionServiceConfig tailscale"))
}
