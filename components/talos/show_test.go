package talos

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/mocks"
)

func TestTalosCluster_ShowsEachNodesConfiguration(t *testing.T) {
	for _, preview := range []bool{false, true} {
		r := answers(&mocks.Recorder{DryRun: preview})
		require.NoError(t, r.Run(program(arguments(t, func(c *cluster.Cluster) {
			c.Talos.Sysctls = map[string]string{"vm.max_map_count": "262144"}
			workers(c).Nodes[0].Taints = map[string]string{"dedicated": "storage:NoSchedule"}
		}), nil)))
		for _, node := range allMachines(t) {
			shown := r.Resource(t, "infra-"+node.Name+"-configuration")
			assert.Equal(t, typeMachineConfiguration, shown.Type)
			assert.False(t, shown.Custom)
			assert.Equal(t, r.Only(t, typeTalosCluster).URN, shown.Parent)
			text := shown.Input("configuration").(string)
			for _, line := range []string{
				"HostnameConfig.hostname = " + node.Name,
				"machine.type = " + string(node.Role),
				"machine.network.interfaces[0].addresses[0] = " + node.Address.String() + "/24",
				"machine.install.image = factory.talos.dev/nocloud-installer/(schematic):v1.14.6",
				"machine.sysctls.vm.max_map_count = 262144",
				"machine.token = (from the machine secrets)",
			} {
				assert.Contains(t, "\n"+text, "\n"+line+"\n")
			}
			assert.Equal(t, []any{"siderolabs/qemu-guest-agent"}, shown.Input("extensions"))
			assert.False(t, shown.SecretInput("configuration"), "a preview does not display a secret")
		}
		assert.Contains(t, r.Resource(t, "infra-infra-worker-1-configuration").Input("configuration"),
			"machine.kubelet.extraConfig.registerWithTaints[0].key = dedicated\n")
	}
}

func TestTalosCluster_HidesTheUsersValuesThatMayBeSecret(t *testing.T) {
	r := up(t, func(c *cluster.Cluster) {
		c.SecretPatches.All = patch(`{"machine":{"registries":{"config":{"registry":{"auth":{` +
			`"username":"flux","password":"` + keyMaterial + `"}}}}}}`)
		c.SecretPatches.Workers = patch(`{"apiVersion":"v1alpha1","kind":"ExtensionServiceConfig","name":"tailscale",` +
			`"environment":["TS_AUTHKEY=` + keyMaterial + `"]}`)
	})
	for _, reg := range r.Resources() {
		assert.Empty(t, reg.PlainPaths(keyMaterial), "%s %s", reg.Type, reg.Name)
	}
	shown := r.Resource(t, "infra-infra-worker-1-configuration")
	for path, value := range shown.Inputs["secrets"].ObjectValue() {
		assert.True(t, value.IsSecret(), "%s: the engine stores it encrypted, to detect a change", path)
	}
	assert.Equal(t, map[string]any{
		"machine.registries.config.registry.auth.username": "flux",
		"machine.registries.config.registry.auth.password": keyMaterial,
		"ExtensionServiceConfig tailscale.environment[0]":  "TS_AUTHKEY=" + keyMaterial,
	}, shown.Input("secrets"))
	text := shown.Input("configuration").(string)
	assert.Contains(t, text, "machine.registries.config.registry.auth.password = [secret]\n")
	assert.NotContains(t, text, keyMaterial)
}
