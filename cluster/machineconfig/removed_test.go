package machineconfig

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
)

func TestCheckPatches_RefusesWhatTheDeclaredKubernetesHasRemoved(t *testing.T) {
	of := func(version string, change func(*cluster.Cluster)) (said []string) {
		for _, violation := range CheckPatches(sample(t, func(c *cluster.Cluster) {
			c.Kubernetes.Version = version
			change(c)
		})) {
			said = append(said, violation.Error())
		}
		return said
	}
	patched := func(patch string) func(*cluster.Cluster) {
		return func(c *cluster.Cluster) { c.Talos.Patches.ControlPlanes = patches(patch) }
	}
	const (
		ours  = "cluster: {apiServer: {extraArgs: {feature-gates: 'AppArmor=true,Later=true', enable-admission-plugins: 'SecurityContextDeny'}}}"
		flag  = "machine: {kubelet: {extraArgs: {pod-infra-container-image: x}}}"
		gates = "machine: {kubelet: {extraConfig: {featureGates: {SizeMemoryBackedVolumes: false}}}}"
	)
	assert.Equal(t, []string{
		"talos.patches.controlPlanes[0]: cluster.apiServer.extraArgs.enable-admission-plugins: SecurityContextDeny is an admission plugin that " +
			"Kubernetes 1.30 has removed; remove it",
		"talos.patches.controlPlanes[0]: cluster.apiServer.extraArgs.feature-gates: AppArmor is a feature gate that Kubernetes 1.33 has " +
			"removed; remove it",
	}, of("v1.35.8", patched(ours)))
	assert.Len(t, of("v1.32.0", patched(ours)), 1, "that release has the gate")
	assert.Empty(t, of("v1.34.0", patched(flag)))
	assert.Equal(t, []string{"talos.patches.controlPlanes[0]: machine.kubelet.extraArgs.pod-infra-container-image: " +
		"pod-infra-container-image is a flag that Kubernetes 1.35 has removed; remove it"}, of("v1.35.8", patched(flag)))
	assert.Equal(t, []string{"talos.patches.controlPlanes[0]: machine.kubelet.extraConfig.featureGates: SizeMemoryBackedVolumes is a " +
		"feature gate that Kubernetes 1.35 has removed; remove it"}, of("v1.35.8", patched(gates)))
	assert.Equal(t, []string{
		`talos.kubelet.extraArgs["feature-gates"]: CPUManager is a feature gate that Kubernetes 1.33 has removed; remove it`},
		of("v1.35.8", func(c *cluster.Cluster) {
			c.Talos.Kubelet.ExtraArgs = map[string]string{"feature-gates": "CPUManager=true"}
		}))
}
