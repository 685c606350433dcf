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
	const extra, config = "machine: {kubelet: {extraConfig: {", "machine.kubelet.extraConfig."
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
		"cluster: {apiServer: {extraArgs: {disable-admission-plugins: NodeRestriction}}}": "cluster.apiServer.extraArgs.disable-admission-" +
			"plugins: NodeRestriction is switched on as well, and the API server starts with no such pair; remove it",
		"cluster: {scheduler: {config: {podInitialBackoffSeconds: 20}}}": "cluster.scheduler.config.podInitialBackoffSeconds: " +
			"podMaxBackoffSeconds is less than podInitialBackoffSeconds, which are 10 and 1 by default; set both, the first one no less than " +
			"the second",
		extra + "cgroupsPerQOS: false}}}": config + "cgroupsPerQOS: is off, and the limits of pods are enforced by it; write " +
			"enforceNodeAllocatable: [none] as well",
		extra + "cpuManagerPolicyOptions: {full-pcpus-only: 'true'}}}}": config + "cpuManagerPolicyOptions: is only taken with " +
			"cpuManagerPolicy: static; set that as well",
		extra + "enableSystemLogQuery: true, enableSystemLogHandler: false}}}": config + "enableSystemLogQuery: needs " +
			"enableSystemLogHandler; switch that on",
		extra + "enforceNodeAllocatable: [none, pods]}}}": config + "enforceNodeAllocatable: has words that exclude each other; keep one of " +
			"them",
		extra + "enforceNodeAllocatable: [pods, kube-reserved]}}}": config + "enforceNodeAllocatable: has kube-reserved, and needs the " +
			"cgroup; set kubeReservedCgroup",
		extra + "maxParallelImagePulls: 5, serializeImagePulls: true}}}": config + "maxParallelImagePulls: is more than 1, and " +
			"serializeImagePulls is on; switch that off",
		extra + "memoryManagerPolicy: Static}}}": config + "memoryManagerPolicy: is Static, and needs the reserved memory of each NUMA " +
			"node; set reservedMemory; its sum is that of all that the kubelet reserves",
		extra + "reservedSystemCPUs: 0-1, kubeReservedCgroup: /kube}}}": config + "reservedSystemCPUs: excludes systemReservedCgroup and " +
			"kubeReservedCgroup; keep one of them",
		extra + "shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 10}]}}}": config +
			"shutdownGracePeriodByPodPriority: excludes shutdownGracePeriod and shutdownGracePeriodCriticalPods, which Talos sets; set both " +
			"to 0s",
		"machine: {kubelet: {extraArgs: {eviction-soft: memory.available<500Mi}}}": "machine.kubelet.extraArgs.eviction-soft: has a signal " +
			"without a period in evictionSoftGracePeriod; add one there, or use evictionHard",
		"machine: {kubelet: {extraArgs: {cpu-manager-policy: static, system-reserved: memory=1Gi}}}": "machine.kubelet.extraArgs.cpu-" +
			"manager-policy: is static, and no CPU is reserved; reserve some in systemReserved.cpu",
		"cluster: {scheduler: {extraArgs: {feature-gates: ResourceHealthStatus=false}}}": "cluster.scheduler.extraArgs.feature-gates: " +
			"ResourceHealthStatus is off, and in Kubernetes 1.36, these are on and need it: ResourceHealthStatusMessage; switch it on, or " +
			"them off",
		"cluster: {apiServer: {extraArgs: {feature-gates: 'GangScheduling=true'}}}": "cluster.apiServer.extraArgs.feature-gates: " +
			"GenericWorkload is off, and in Kubernetes 1.36, these are on and need it: GangScheduling; switch it on, or them off",
		"cluster: {controllerManager: {extraArgs: {feature-gates: 'kube:AllBeta=false,kube:ExtendWebSocketsToKubelet=true'}}}": "cluster." +
			"controllerManager.extraArgs.feature-gates: NodeDeclaredFeatures is off, and in Kubernetes 1.36, these are on and need it: " +
			"ExtendWebSocketsToKubelet; switch it on, or them off",
		extra + "featureGates: {PodLevelResources: false}}}}": config + "featureGates: PodLevelResources is off, and in Kubernetes 1.36, " +
			"these are on and need it: InPlacePodLevelResourcesVerticalScaling; switch it on, or them off",
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
		"cluster: {apiServer: {extraArgs: {disable-admission-plugins: 'PodSecurity,LimitRanger'}}}",
		"cluster: {apiServer: {extraArgs: {service-account-max-token-expiration: 0s, goaway-chance: '0.02', runtime-config: " +
			"'api/beta=true,batch/v1/jobs=false,storage.k8s.io/v1beta1'}}}",
		extra + "cgroupsPerQOS: false, enforceNodeAllocatable: [none]}}}",
		extra + "cpuManagerPolicy: static}}}", // Talos reserves CPU
		extra + "cpuManagerPolicy: static, systemReserved: {}}}}",
		extra + "cpuManagerPolicy: static, systemReserved: {memory: 1Gi}, reservedSystemCPUs: '0-1,4'}}}",
		extra + "maxParallelImagePulls: 5}}}", // Talos lets the kubelet pull in parallel
		extra + "memoryManagerPolicy: Static, reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]}}}",
		extra + "shutdownGracePeriod: 60s}}}",
		extra + "evictionSoft: {memory.available: 0%}}}}",
		"machine: {kubelet: {extraArgs: {eviction-soft: memory.available<500Mi, eviction-soft-grace-period: memory.available=1m}}}",
		"machine: {kubelet: {extraArgs: {eviction-soft: memory.available<500Mi}, extraConfig: {evictionSoftGracePeriod: " +
			"{memory.available: 1m}}}}",
		"cluster: {scheduler: {extraArgs: {feature-gates: 'ResourceHealthStatus=false,ResourceHealthStatusMessage=false'}}}",
		"cluster: {apiServer: {extraArgs: {feature-gates: 'AllAlpha=true'}}, controllerManager: {extraArgs: {feature-gates: 'AllBeta=false'}}}",
		"cluster: {apiServer: {extraArgs: {feature-gates: 'AllAlpha=true,GangScheduling=true,DRADeviceTaintRules=true'}}}",
		"cluster: {apiServer: {extraArgs: {feature-gates: PodLevelResources=false, emulated-version: 'kube=1.33'}}}",
		"machine: {kubelet: {extraArgs: {feature-gates: PodLevelResources=true}, extraConfig: {featureGates: {PodLevelResources: false}}}}",
		extra + "featureGates: {PodLevelResources: false, InPlacePodLevelResourcesVerticalScaling: false}}}}",
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
