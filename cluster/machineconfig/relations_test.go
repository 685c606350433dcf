package machineconfig

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
)

func TestCheckPatches_RefusesValuesThatDoNotGoTogether(t *testing.T) {
	check := func(patch string) []Violation {
		return CheckPatches(sample(t, func(c *cluster.Cluster) {
			c.Talos.Version, c.Kubernetes.Version, c.Talos.Patches.ControlPlanes = "v1.14.6", "v1.36.6", patches(patch)
		}))
	}
	for patch, says := range map[string]string{
		"cluster: {apiServer: {extraArgs: {oidc-issuer-url: 'https://id.home.arpa'}}}": "cluster.apiServer.extraArgs.oidc-issuer-url: " +
			"oidc-issuer-url needs oidc-client-id; add it",
		"cluster: {apiServer: {extraArgs: {oidc-groups-claim: groups, oidc-client-id: k8s}}}": "cluster.apiServer.extraArgs.oidc-client-id: " +
			"oidc-client-id needs oidc-issuer-url; add it",
		"cluster: {apiServer: {extraArgs: {oidc-issuer-url: 'http://id.home.arpa', oidc-client-id: k8s}}}": "cluster.apiServer.extraArgs." +
			"oidc-issuer-url: oidc-issuer-url has a value that kube-apiserver refuses; write an https URL",
		"cluster: {controllerManager: {extraArgs: {leader-elect-lease-duration: 5s}}}": "cluster.controllerManager.extraArgs." +
			"leader-elect-lease-duration: leader-elect-lease-duration is not longer than leader-elect-renew-deadline, which is 15s and 10s by " +
			"default; make it longer",
		"cluster: {etcd: {extraArgs: {heartbeat-interval: '500'}}}": "cluster.etcd.extraArgs.heartbeat-interval: election-timeout is less " +
			"than five times heartbeat-interval, or more than 50000; write five times heartbeat-interval or more",
		"machine: {kubelet: {extraArgs: {image-gc-high-threshold: '70'}}}": "machine.kubelet.extraArgs.image-gc-high-threshold: images are " +
			"removed until the disk is as full as when that begins: 85 and 80 are the defaults; set both, the high one above the low one",
		"machine: {kubelet: {extraConfig: {imageGCLowThresholdPercent: 90}}}": "machine.kubelet.extraConfig.imageGCLowThresholdPercent: " +
			"images are removed until the disk is as full as when that begins: 85 and 80 are the defaults; set both, the high one above the low one",
	} {
		violations := check(patch)
		if assert.Len(t, violations, 1, patch) {
			assert.Equal(t, "talos.patches.controlPlanes[0]: "+says, violations[0].Error())
		}
	}
	for _, right := range []string{
		"cluster: {apiServer: {extraArgs: {oidc-issuer-url: 'https://id.home.arpa', oidc-client-id: k8s, oidc-groups-claim: groups}}}",
		"cluster: {scheduler: {extraArgs: {leader-elect-lease-duration: 60s, leader-elect-renew-deadline: 40s}}}",
		"cluster: {etcd: {extraArgs: {heartbeat-interval: '500', election-timeout: '5000'}}}",
		"machine: {kubelet: {extraArgs: {image-gc-high-threshold: '70', image-gc-low-threshold: '60'}}}",
		"machine: {kubelet: {extraConfig: {imageGCHighThresholdPercent: 70, imageGCLowThresholdPercent: 60}}}",
	} {
		assert.Empty(t, check(right), right)
	}
	flags := map[string]string{"image-gc-high-threshold": "70"}
	alone := sample(t, func(c *cluster.Cluster) {
		c.Talos.Version, c.Kubernetes.Version, c.Talos.Kubelet.ExtraArgs = "v1.14.6", "v1.36.6", flags
	})
	assert.Len(t, CheckPatches(alone), 1)
	alone.Talos.Patches.All = patches("machine: {kubelet: {extraConfig: {imageGCLowThresholdPercent: 60}}}")
	assert.Empty(t, CheckPatches(alone), "the other value is in a patch")
}
