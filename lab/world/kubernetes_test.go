package world

import (
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/talos"
)

func TestMaxPods_AFlagWinsOverTheConfigurationFile(t *testing.T) {
	require.Equal(t, 220, maxPods(talos.KubeletConfig{MaxPods: 220}))
	require.Equal(t, 50, maxPods(talos.KubeletConfig{MaxPods: 220, ExtraArgs: map[string]string{"max-pods": "50"}}))
	require.Zero(t, maxPods(talos.KubeletConfig{}), "the kubelet's default")
}

func TestLoopback_StaysTheSameForARestoredCluster(t *testing.T) {
	k := &kubernetes{indices: map[string]int{}}
	of := func(id string) config.Provider {
		return container.NewV1Alpha1(&v1alpha1.Config{ClusterConfig: &v1alpha1.ClusterConfig{ClusterID: id}})
	}
	lost := k.loopback(of("a"))
	require.NotEqual(t, lost, k.loopback(of("b")))
	require.Equal(t, lost, k.loopback(of("a")), "what a snapshot holds names it")
}
