package talos

import (
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
)

func TestReboots_OfSeveralControlPlanesAtOnceAreRefused(t *testing.T) {
	r, all := &reboots{}, machines(t)
	require.NoError(t, r.admit(all[0], 1, "urn:1"))
	err := r.admit(all[1], 1, "urn:2")
	require.ErrorContains(t, err,
		"nodePools[0].nodes[1]: the change reboots infra-cp-2 together with infra-cp-1, and etcd would lose its quorum")
	require.ErrorContains(t, err, "pulumi up --target 'urn:2'")
	require.NoError(t, r.admit(all[3], 1, "urn:3"), "a worker beside a control plane")
}

func TestReboots_OfWorkersAreLimitedByMaxUnavailable(t *testing.T) {
	all := machines(t)
	r := &reboots{}
	require.NoError(t, r.admit(all[3], 1, "urn:1"))
	require.ErrorContains(t, r.admit(all[4], 1, "urn:2"), "lifecycle.maxUnavailable is 1")
	r = &reboots{}
	require.NoError(t, r.admit(all[3], 2, "urn:1"))
	require.NoError(t, r.admit(all[4], 2, "urn:2"))
}

func TestReboots_AreCausedByHardwareOnly(t *testing.T) {
	inputs := func(memory, tag string) resource.PropertyMap {
		return resource.NewPropertyMapFromMap(map[string]any{
			"memory": map[string]any{"dedicated": memory}, "tags": []any{tag}, "nodeName": tag,
			"disks": []any{map[string]any{"interface": "scsi0", "size": 20, "cache": tag}},
		})
	}
	grown := inputs("4096", "a")
	grown["disks"] = resource.NewPropertyValue([]any{map[string]any{"interface": "scsi0", "size": 40}})
	assert.True(t, needsReboot(inputs("4096", "a"), grown), "the provider reboots for a disk that grows")
	assert.False(t, needsReboot(inputs("4096", "a"), inputs("4096", "b")), "tags, host and how a disk is cached")
	assert.True(t, needsReboot(inputs("4096", "a"), inputs("8192", "a")))
	secret := inputs("4096", "a")
	secret["memory"] = resource.MakeSecret(secret["memory"])
	assert.False(t, needsReboot(inputs("4096", "a"), secret))
}

func TestTalosCluster_ChecksInPreviewsHowManyMachinesAChangeReboots(t *testing.T) {
	r := up(t, func(c *cluster.Cluster) { c.Lifecycle.MaxUnavailable = 2 })
	for _, vm := range r.OfType(typeVM) {
		assert.Contains(t, vm.RPC.GetHooks().GetBeforeUpdate(), strings.TrimSuffix(vm.Name, "-vm")+"-reboot")
	}
	checked := 0
	for _, hook := range r.Hooks() {
		if strings.HasSuffix(hook.Name, "-reboot") {
			checked++
			assert.True(t, hook.OnDryRun, hook.Name)
		}
	}
	assert.Equal(t, len(machines(t)), checked)
}
