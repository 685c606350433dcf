package upgrade

import (
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/nodes/versions"
)

func TestImages_AreThoseThatTheConfigurationNames(t *testing.T) {
	config := &v1alpha1.Config{
		MachineConfig: &v1alpha1.MachineConfig{MachineType: machine.TypeControlPlane.String()}, ClusterConfig: &v1alpha1.ClusterConfig{},
	}
	before := images(config)
	assert.Len(t, before, 4, "Talos has an image for what is not named")
	for component := range before {
		image := "registry.example.com/" + string(component) + ":v1.35.8"
		require.NoError(t, setImage(config, component, image))
		after := images(config)
		assert.Equal(t, image, after[component])
		for other, same := range before {
			if other != component {
				assert.Equal(t, same, after[other], "only %s changes", component)
			}
		}
		before = after
	}
	config.MachineConfig.MachineType = machine.TypeWorker.String()
	assert.Len(t, images(config), 1)
	require.Error(t, setImage(config, versions.Component("etcd"), "x"))
}
