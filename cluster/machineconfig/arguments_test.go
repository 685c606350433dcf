package machineconfig

import (
	"fmt"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
)

func TestUnfit_NamesByComponentWhatAReleaseOfKubernetesDoesNotTake(t *testing.T) {
	has, err := configloader.NewFromBytes([]byte(`
version: v1alpha1
machine: {type: controlplane, kubelet: {extraArgs: {pod-infra-container-image: secret.example.com/pause}}}
cluster:
  apiServer: {extraArgs: {feature-gates: "AppArmor=true,SidecarContainers=true"}}
  scheduler: {extraArgs: {v: "2"}}
`))
	require.NoError(t, err)
	assert.Equal(t, map[string][]string{
		"kube-apiserver": {"cluster.apiServer.extraArgs.feature-gates: AppArmor is a feature gate that Kubernetes 1.33 has removed"},
	}, Unfit(has, "v1.34.2"))
	assert.Equal(t, []string{"machine.kubelet.extraArgs.pod-infra-container-image: pod-infra-container-image is a flag that Kubernetes 1.35 " +
		"has removed"}, Unfit(has, "v1.35.8")["kubelet"], "without its value")
}

func TestUnfitForTalos_NamesWhatAReleaseKeepsForItself(t *testing.T) {
	has, err := configloader.NewFromBytes([]byte(`
version: v1alpha1
machine: {type: controlplane}
cluster: {apiServer: {extraArgs: {tls-min-version: VersionTLS13}}, etcd: {extraArgs: {heartbeat-interval: "500"}}}
`))
	require.NoError(t, err)
	assert.Empty(t, UnfitForTalos(has, "v1.13.9"))
	assert.Equal(t, []string{"cluster.apiServer.extraArgs.tls-min-version: Talos 1.14 sets tls-min-version itself, and starts no " +
		"kube-apiserver that is given it, too"}, UnfitForTalos(has, "v1.14.1"))
}

func TestUnfit_NamesNothingOfSlipwaysOwn(t *testing.T) {
	for kubernetes := 35; kubernetes <= 37; kubernetes++ {
		c := sample(t, everything, func(c *cluster.Cluster) { c.Talos.Patches = cluster.Patches{} })
		for _, machine := range c.Machines() {
			full, err := assemble(model{*c}, machine)
			require.NoError(t, err)
			assert.Empty(t, Unfit(full, fmt.Sprintf("v1.%d.0", kubernetes)), machine.Name)
			assert.Empty(t, UnfitForTalos(full, "v1.14.1"), machine.Name)
		}
	}
}
