package talos_test

import (
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/talos"
)

func TestManifests_AreAppliedAgainWhenAControlPlanesConfigurationChangesThem(t *testing.T) {
	w := newWorld(t)
	w.install(configmachine.TypeControlPlane, 11)
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)
	applied := func() int {
		w.kube.mu.Lock()
		defer w.kube.mu.Unlock()
		return len(w.kube.planes[0].applied)
	}
	before := applied()
	apply := func(contents string) {
		_, err := w.admin(11).ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{
			Data: w.config(configmachine.TypeControlPlane, 11, func(c *v1alpha1.Config) {
				c.ClusterConfig.ClusterInlineManifests = v1alpha1.ClusterInlineManifests{{InlineManifestName: "cilium",
					InlineManifestContents: contents}}
			}),
			Mode: machine.ApplyConfigurationRequest_NO_REBOOT,
		})
		require.NoError(t, err)
	}
	apply("kind: ConfigMap")
	require.Equal(t, before+1, applied())
	apply("kind: ConfigMap")
	require.Equal(t, before+1, applied(), "nothing has changed")
	w.kube.mu.Lock()
	defer w.kube.mu.Unlock()
	require.Equal(t, "kind: ConfigMap", w.kube.planes[0].applied[before].Cluster().InlineManifests()[0].Contents())
}
