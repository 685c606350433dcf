package machineconfig

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
)

func TestCheckPatches_RefusesWhatIsAlmostWhatTheComponentsKnow(t *testing.T) {
	of := func(version, patch string, kubelet map[string]string) (said []string) {
		for _, violation := range CheckPatches(sample(t, func(c *cluster.Cluster) {
			c.Talos.Version, c.Kubernetes.Version, c.Talos.Kubelet.ExtraArgs = "v1.14.6", version, kubelet
			c.Talos.Patches.ControlPlanes = patches(patch)
		})) {
			said = append(said, violation.Error())
		}
		return said
	}
	const at = "talos.patches.controlPlanes[0]: cluster."
	for patch, says := range map[string]string{
		"cluster: {apiServer: {extraArgs: {oidc-isuer-url: https://id.home.arpa}}}": at + "apiServer.extraArgs.oidc-isuer-url: " +
			"oidc-isuer-url is no flag of kube-apiserver in Kubernetes 1.36; did you mean oidc-issuer-url?",
		"cluster: {apiServer: {extraArgs: {feature-gates: 'APIServerTracin=true,AllAlpha=false'}}}": at + "apiServer.extraArgs.feature-gates: " +
			"APIServerTracin is no feature gate in Kubernetes 1.36; did you mean APIServerTracing?",
		"cluster: {apiServer: {extraArgs: {disable-admission-plugins: PodSecurty}}}": at + "apiServer.extraArgs.disable-admission-plugins: " +
			"PodSecurty is no admission plugin in Kubernetes 1.36; did you mean PodSecurity?",
		"cluster: {controllerManager: {extraArgs: {node-monitor-graceperiod: 1m}}}": at +
			"controllerManager.extraArgs.node-monitor-graceperiod: node-monitor-graceperiod is no flag of kube-controller-manager in " +
			"Kubernetes 1.36; did you mean node-monitor-grace-period?",
		"cluster: {scheduler: {extraArgs: {leader-electt: 'true'}}}": at + "scheduler.extraArgs.leader-electt: " +
			"leader-electt is no flag of kube-scheduler in Kubernetes 1.36; did you mean leader-elect?",
		"cluster: {etcd: {extraArgs: {quota-backend-byte: '8589934592'}}}": at + "etcd.extraArgs.quota-backend-byte: " +
			"quota-backend-byte is no flag of etcd; did you mean quota-backend-bytes?",
		"machine: {kubelet: {extraConfig: {featureGates: {MemoryQoSS: true}}}}": "talos.patches.controlPlanes[0]: " +
			"machine.kubelet.extraConfig.featureGates: MemoryQoSS is no feature gate in Kubernetes 1.36; did you mean MemoryQoS?",
	} {
		assert.Equal(t, []string{says}, of("v1.36.6", patch, nil))
		assert.Empty(t, of("v1.33.1", patch, nil), "nothing is known of that release")
	}
	assert.Equal(t, []string{`talos.kubelet.extraArgs["max-pod"]: max-pod is no flag of kubelet in Kubernetes 1.36; did you mean max-pods?`},
		of("v1.36.6", "machine: {sysctls: {vm.swappiness: '1'}}", map[string]string{"max-pod": "100"}))

	assert.Empty(t, of("v1.36.6", "cluster: {apiServer: {extraArgs: {oidc_issuer_url: https://id.home.arpa, v: '4', vmodule: 'a=2', "+
		"feature-gates: 'kube: AllBeta=true, MemoryQoS =false', enable-admission-plugins: 'AlwaysPullImages,PodNodeSelector'}}}",
		map[string]string{"v": "2", "feature-gates": "MemoryQoS=true"}), "what they know, and names as the components read them")
	assert.Empty(t, of("v1.36.9", "cluster: {apiServer: {extraArgs: {feature-gates: 'OfALaterPatchRelease=true'}}}", nil))
}

func TestCheckPatches_RefusesWhatAnEarlierReleaseKnew(t *testing.T) {
	for patch, says := range map[string]string{
		"cluster: {apiServer: {extraArgs: {feature-gates: TopologyAwareHints=true}}}": "cluster.apiServer.extraArgs.feature-gates: " +
			"TopologyAwareHints is no feature gate any more since Kubernetes 1.36; remove it",
		"machine: {kubelet: {extraArgs: {event-storage-age-limit: default=0}}}": "machine.kubelet.extraArgs.event-storage-age-limit: " +
			"event-storage-age-limit is no flag of kubelet any more since Kubernetes 1.37; remove it",
	} {
		for version, refused := range map[string]bool{"v1.35.4": false, "v1.37.2": true} {
			violations := CheckPatches(sample(t, func(c *cluster.Cluster) {
				c.Talos.Version, c.Kubernetes.Version, c.Talos.Patches.ControlPlanes = "v1.14.6", version, patches(patch)
			}))
			if !refused {
				assert.Empty(t, violations, "%s: %s", version, patch)
			} else if assert.Len(t, violations, 1) {
				assert.Equal(t, "talos.patches.controlPlanes[0]: "+says, violations[0].Error())
			}
		}
	}
}
