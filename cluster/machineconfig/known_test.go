package machineconfig

import (
	"strings"
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
		"cluster: {apiServer: {extraArgs: {runtime-config: 'api/beta=true,apps/v2=true'}}}": at + "apiServer.extraArgs.runtime-config: " +
			"apps/v2 is no API of kube-apiserver in Kubernetes 1.36; did you mean apps/v1?",
	} {
		assert.Equal(t, []string{says}, of("v1.36.6", patch, nil))
		assert.Empty(t, of("v1.33.1", patch, nil), "nothing is known of that release")
	}
	assert.Equal(t, []string{`talos.kubelet.extraArgs["max-pod"]: max-pod is no flag of kubelet in Kubernetes 1.36; did you mean max-pods?`},
		of("v1.36.6", "machine: {sysctls: {vm.swappiness: '1'}}", map[string]string{"max-pod": "100"}))

	assert.Equal(t, []string{`talos.kubelet.extraArgs["network-plugin"]: network-plugin is no flag of kubelet in Kubernetes 1.36; remove it`},
		of("v1.36.6", "machine: {sysctls: {vm.swappiness: '1'}}", map[string]string{"network-plugin": "cni"}),
		"new flags come with a minor release only")

	assert.Empty(t, of("v1.36.6", "cluster: {apiServer: {extraArgs: {oidc_issuer_url: https://id.home.arpa, oidc-client-id: k8s, v: '4', "+
		"vmodule: 'a=2', feature-gates: 'kube: AllBeta=true, MemoryQoS =false', enable-admission-plugins: 'AlwaysPullImages,PodNodeSelector'}}}",
		map[string]string{"v": "2", "feature-gates": "MemoryQoS=true"}), "what they know, and names as the components read them")
	assert.Empty(t, of("v1.36.6", "cluster: {controllerManager: {extraArgs: {concurrent_rc_syncs: '6', concurrent-gc-syncs: '30'}}}", nil))
	assert.Empty(t, of("v1.36.6", "cluster: {controllerManager: {extraArgs: {concurrent-rc-syncs: '6'}}}", nil))
	assert.Empty(t, of("v1.36.9", "cluster: {apiServer: {extraArgs: {feature-gates: 'OfALaterPatchRelease=true'}}}", nil))
}

func TestCheckPatches_NamesTheFirstOfSeveralFlagsWithLists(t *testing.T) {
	c := sample(t)
	c.Talos.Patches.ControlPlanes = patches("cluster: {apiServer: {extraArgs: {d: [a], c: [a], b: [a], a: [a]}}}")
	for range 20 {
		assert.ErrorContains(t, CheckPatches(c)[0], "gives cluster.apiServer.extraArgs.a a list")
	}
}

func TestCheckPatches_RefusesWhatAnEarlierReleaseKnew(t *testing.T) {
	for patch, says := range map[string]string{
		"cluster: {apiServer: {extraArgs: {feature-gates: TopologyAwareHints=true}}}": "cluster.apiServer.extraArgs.feature-gates: " +
			"TopologyAwareHints is no feature gate any more since Kubernetes 1.36; remove it",
		"machine: {kubelet: {extraArgs: {event-storage-age-limit: default=0}}}": "machine.kubelet.extraArgs.event-storage-age-limit: " +
			"event-storage-age-limit is no flag of kubelet any more since Kubernetes 1.37; remove it",
		"cluster: {apiServer: {extraArgs: {runtime-config: autoscaling/v2beta2=true}}}": "cluster.apiServer.extraArgs.runtime-config: " +
			"autoscaling/v2beta2 is no API of kube-apiserver any more since Kubernetes 1.36; remove it",
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

func TestCheckPatches_RefusesWhatAReleaseOfTalosKeepsForItself(t *testing.T) {
	for patch, keeps := range map[string]string{
		"cluster: {apiServer: {extraArgs: {tls-min-version: VersionTLS12}}}":               "v1.14.1 kube-apiserver",
		"cluster: {etcd: {extraArgs: {feature-gates: InitialCorruptCheck=true}}}":          "v1.14.1 etcd",
		"cluster: {etcd: {extraArgs: {experimental-compact-hash-check-enabled: 'false'}}}": "v1.13.9 etcd",
	} {
		for _, version := range []string{"v1.13.9", "v1.14.1"} {
			violations := CheckPatches(sample(t, func(c *cluster.Cluster) {
				c.Talos.Version, c.Kubernetes.Version, c.Talos.Patches.ControlPlanes = version, "v1.36.6", patches(patch)
			}))
			refusing, component, _ := strings.Cut(keeps, " ")
			if version != refusing {
				for _, violation := range violations { // what Talos does not keep any more, its etcd has not
					assert.ErrorContains(t, violation, " is no flag any more of the etcd of Talos 1.14; remove it")
				}
			} else if assert.Len(t, violations, 1, "%s: %s", version, patch) {
				assert.Regexp(t, `: Talos 1\.1[34] sets [a-z-]+ itself, and starts no `+component+` that is given it, too; remove it$`,
					violations[0].Error())
			}
		}
	}
}

func TestCheckPatches_RefusesFlagsThatTheEtcdOfTalosHasNotAnyMore(t *testing.T) {
	for flag, refusing := range map[string]string{
		"experimental-txn-mode-write-with-shared-buffer": "v1.14.1", "enable-v2": "v1.13.9 v1.14.1", "v2-deprecation": "",
		"of-a-later-release": "", "experimental-enable-v2v3": "v1.13.9 v1.14.1",
	} {
		for _, version := range []string{"v1.13.9", "v1.14.1", "v1.15.0"} {
			violations := CheckPatches(sample(t, func(c *cluster.Cluster) {
				c.Talos.Version, c.Kubernetes.Version = version, "v1.36.6"
				c.Talos.Patches.ControlPlanes = patches("cluster: {etcd: {extraArgs: {" + flag + ": 'true'}}}")
			}))
			if !strings.Contains(refusing, version) {
				assert.Empty(t, violations, "%s: %s", version, flag)
			} else if assert.Len(t, violations, 1, "%s: %s", version, flag) {
				assert.ErrorContains(t, violations[0], flag+" is no flag any more of the etcd of Talos "+version[1:5]+"; remove it")
			}
		}
	}
}

func TestCheckPatches_RefusesValuesThatTheComponentsCannotRead(t *testing.T) {
	for patch, says := range map[string]string{
		"cluster: {apiServer: {extraArgs: {event-ttl: '2'}}}": "cluster.apiServer.extraArgs.event-ttl: event-ttl has a value that " +
			"kube-apiserver refuses; write a duration with its unit, such as 5m",
		"cluster: {apiServer: {extraArgs: {runtime-config: 'batch/v1=never'}}}": "cluster.apiServer.extraArgs.runtime-config: runtime-config " +
			"has a value that kube-apiserver refuses; write api/all=true, or GROUP/VERSION=false, such as apps/v1=false, several with commas " +
			"between them",
		"cluster: {apiServer: {extraArgs: {service-node-port-range: 30000-many}}}": "cluster.apiServer.extraArgs.service-node-port-range: " +
			"service-node-port-range has a value that kube-apiserver refuses; write two ports, such as 30000-32767",
		"cluster: {apiServer: {extraArgs: {v: high}}}": "cluster.apiServer.extraArgs.v: v has a value that kube-apiserver refuses; write a " +
			"whole number",
		"machine: {kubelet: {extraArgs: {eviction-hard: memory.availabel<1Gi}}}": "machine.kubelet.extraArgs.eviction-hard: eviction-hard " +
			"has a value that kubelet refuses; write SIGNAL<AMOUNT, such as memory.available<500Mi, several with commas between them",
		"machine: {kubelet: {extraArgs: {kube-reserved: 'cpu=100m,memory=much'}}}": "machine.kubelet.extraArgs.kube-reserved: kube-reserved " +
			"has a value that kubelet refuses; write RESOURCE=AMOUNT, such as memory=1Gi, several with commas between them",
		"machine: {kubelet: {extraConfig: {evictionHard: {memory.available: 5}}}}": "machine.kubelet.extraConfig.evictionHard.memory." +
			"available: evictionHard.memory.available has a value that the kubelet refuses; write a text",
		"machine: {kubelet: {extraConfig: {logging: {vmodule: [{filePatern: a}]}}}}": "machine.kubelet.extraConfig.logging.vmodule[0]." +
			"filePatern: logging.vmodule[0].filePatern is no field of KubeletConfiguration in Kubernetes 1.36; did you mean filePattern?",
		"cluster: {scheduler: {config: {parallelism: '16'}}}": "cluster.scheduler.config.parallelism: parallelism has a value that " +
			"kube-scheduler refuses; write a whole number",
		"cluster: {scheduler: {config: {profiles: [{plugins: {bind: {disabled: [{nam: a}]}}}]}}}": "cluster.scheduler.config.profiles[0]." +
			"plugins.bind.disabled[0].nam: profiles[0].plugins.bind.disabled[0].nam is no field of KubeSchedulerConfiguration in " +
			"Kubernetes 1.36; did you mean name?",
		"cluster: {apiServer: {extraArgs: {profiling: 'ja'}}}": "cluster.apiServer.extraArgs.profiling: profiling has a value that " +
			"kube-apiserver refuses; write true or false",
		"cluster: {apiServer: {extraArgs: {feature-gates: MemoryQoS}}}": "cluster.apiServer.extraArgs.feature-gates: feature-gates has a " +
			"value that kube-apiserver refuses; write NAME=true or NAME=false, several with commas between them",
		"cluster: {scheduler: {extraArgs: {kube-api-burst: many}}}": "cluster.scheduler.extraArgs.kube-api-burst: kube-api-burst has a " +
			"value that kube-scheduler refuses; write a whole number",
		"cluster: {etcd: {extraArgs: {quota-backend-bytes: 8GiB}}}": "cluster.etcd.extraArgs.quota-backend-bytes: quota-backend-bytes has a " +
			"value that etcd refuses; write a whole number",
		"cluster: {etcd: {extraArgs: {feature-gates: InitialCorruptChek=true}}}": "cluster.etcd.extraArgs.feature-gates: InitialCorruptChek " +
			"is no feature gate of etcd; did you mean InitialCorruptCheck?",
		"cluster: {controllerManager: {extraArgs: {controllers: '-nodeipam'}}}": "cluster.controllerManager.extraArgs.controllers: nodeipam " +
			"is a controller without which no cluster comes up; remove it",
		"cluster: {controllerManager: {extraArgs: {controllers: '-ttl-after-finish-controller'}}}": "cluster.controllerManager.extraArgs." +
			"controllers: ttl-after-finish-controller is no controller of kube-controller-manager in Kubernetes 1.36; did you mean " +
			"ttl-after-finished-controller?",
		"machine: {kubelet: {extraArgs: {eviction-hard: memory.available=500Mi}}}": "machine.kubelet.extraArgs.eviction-hard: " +
			"eviction-hard has a value that kubelet refuses; write SIGNAL<AMOUNT, such as memory.available<500Mi, several with commas " +
			"between them",
		"cluster: {apiServer: {extraArgs: {feature-gates: SidecarContainers=false}}}": "cluster.apiServer.extraArgs.feature-gates: " +
			"SidecarContainers can only be true in Kubernetes 1.36; remove it",
		"machine: {kubelet: {extraConfig: {featureGates: {ImageVolume: 'true'}}}}": "machine.kubelet.extraConfig.featureGates: ImageVolume " +
			"has a value that the kubelet refuses; write true or false",
		"machine: {kubelet: {extraConfig: {serializeImagePulls: 1}}}": "machine.kubelet.extraConfig.serializeImagePulls: " +
			"serializeImagePulls has a value that the kubelet refuses; write true or false",
		"machine: {kubelet: {extraArgs: {image-gc-high-threshold: '120'}}}": "machine.kubelet.extraArgs.image-gc-high-threshold: " +
			"image-gc-high-threshold has a value that kubelet refuses; write a whole number from 1 to 100",
		"machine: {kubelet: {extraConfig: {nodeStatusMaxImages: -2}}}": "machine.kubelet.extraConfig.nodeStatusMaxImages: " +
			"nodeStatusMaxImages has a value that the kubelet refuses; write a whole number of at least -1",
		"machine: {kubelet: {extraArgs: {max-open-files: 1e6}}}": "machine.kubelet.extraArgs.max-open-files: max-open-files has a value that " +
			"kubelet refuses; write a whole number of at least 0",
		"machine: {kubelet: {extraConfig: {imageGCHighThresholdPercent: '85'}}}": "machine.kubelet.extraConfig.imageGCHighThresholdPercent: " +
			"imageGCHighThresholdPercent has a value that the kubelet refuses; write a whole number from 1 to 100",
		"machine: {kubelet: {extraConfig: {syncFrequency: 60}}}": "machine.kubelet.extraConfig.syncFrequency: " +
			"syncFrequency has a value that the kubelet refuses; write a duration with its unit, such as 5m",
		"machine: {kubelet: {extraConfig: {allowedUnsafeSysctls: net.core.somaxconn}}}": "machine.kubelet.extraConfig.allowedUnsafeSysctls: " +
			"allowedUnsafeSysctls has a value that the kubelet refuses; write a list",
		"machine: {kubelet: {extraConfig: {evictionHard: {memory.available: 5%}, logging: text}}}": "machine.kubelet.extraConfig.logging: " +
			"logging has a value that the kubelet refuses; write a mapping",
		"machine: {kubelet: {extraConfig: {cpuManagerPolicy: Static}}}": "machine.kubelet.extraConfig.cpuManagerPolicy: cpuManagerPolicy " +
			"has a value that the kubelet refuses; write none or static",
		"machine: {kubelet: {extraArgs: {topology-manager-policy: single-numa}}}": "machine.kubelet.extraArgs.topology-manager-policy: " +
			"topology-manager-policy has a value that kubelet refuses; write best-effort or none or restricted or single-numa-node",
		"cluster: {apiServer: {extraArgs: {audit-log-mode: async}}}": "cluster.apiServer.extraArgs.audit-log-mode: audit-log-mode has a " +
			"value that kube-apiserver refuses; write batch or blocking or blocking-strict",
		"cluster: {apiServer: {extraArgs: {tls-cipher-suites: 'TLS_AES_128_GCM_SHA256,TLS_AES'}}}": "cluster.apiServer.extraArgs." +
			"tls-cipher-suites: tls-cipher-suites has a value that kube-apiserver refuses; write names that it knows, such as " +
			"TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256",
		"cluster: {controllerManager: {extraArgs: {concurrent-service-endpoint-syncs: '60'}}}": "cluster.controllerManager.extraArgs." +
			"concurrent-service-endpoint-syncs: concurrent-service-endpoint-syncs has a value that kube-controller-manager refuses; " +
			"write a whole number from 1 to 50",
		"cluster: {etcd: {extraArgs: {auto-compaction-mode: hourly}}}": "cluster.etcd.extraArgs.auto-compaction-mode: " +
			"auto-compaction-mode has a value that etcd refuses; write periodic or revision",
	} {
		violations := CheckPatches(sample(t, func(c *cluster.Cluster) {
			c.Talos.Version, c.Kubernetes.Version, c.Talos.Patches.ControlPlanes = "v1.13.9", "v1.36.6", patches(patch)
		}))
		if assert.Len(t, violations, 1, patch) {
			assert.Equal(t, "talos.patches.controlPlanes[0]: "+says, violations[0].Error())
		}
	}
	assert.Empty(t, CheckPatches(sample(t, func(c *cluster.Cluster) {
		c.Talos.Version, c.Kubernetes.Version = "v1.14.6", "v1.36.6"
		c.Talos.Patches.ControlPlanes = patches("cluster: {apiServer: {extraArgs: {event-ttl: 2h30m, " +
			"etcd-compaction-interval: 10m, kubelet-timeout: 10s, " +
			"service-account-extend-token-expiration: 'false', profiling: 'T', goaway-chance: '0.001', " +
			"runtime-config: 'api/all=true,resource.k8s.io/v1beta1', " +
			"audit-log-maxage: 0x1e, audit-log-mode: batch, tls-cipher-suites: " +
			"'TLS_AES_128_GCM_SHA256,TLS_CHACHA20_POLY1305_SHA256'}}, controllerManager: {extraArgs: {tls-min-version: VersionTLS13, " +
			"cluster-signing-duration: 720h, controllers: '-ttl-after-finished-controller,bootstrapsigner,*', node-monitor-period: '5s'}}, " +
			"etcd: {extraArgs: {quota-backend-bytes: '8589934592', " +
			"snapshot-count: '10000', max-request-bytes: '0x200000', of-a-later-release: 'x'}}}\nmachine: {kubelet: {extraArgs: " +
			"{image-gc-high-threshold: '84', eviction-hard: 'memory.available<5%,nodefs.available<10%', " +
			"system-reserved: 'cpu=100m,memory=1Gi', sync-frequency: 1m}, extraConfig: {" +
			"imageGCHighThresholdPercent: 85, shutdownGracePeriod: 60s, evictionHard: {memory.available: 5%}, memoryThrottlingFactor: 0.9, " +
			"featureGates: {MemoryQoS: true}, cpuManagerPolicy: static, topologyManagerPolicy: best-effort, " +
			"allowedUnsafeSysctls: [net.core.somaxconn], serializeImagePulls: false, containerLogMaxFiles: null}}}")
	})), "what pflag and Kubernetes' own types read")
}
