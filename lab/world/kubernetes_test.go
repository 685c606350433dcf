package world

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/talos"
)

func TestMaxPods_AFlagWinsOverTheConfigurationFile(t *testing.T) {
	require.Equal(t, 220, maxPods(talos.KubeletConfig{MaxPods: 220}))
	require.Equal(t, 50, maxPods(talos.KubeletConfig{MaxPods: 220, ExtraArgs: map[string]string{"max-pods": "50"}}))
	require.Zero(t, maxPods(talos.KubeletConfig{}), "the kubelet's default")
}
