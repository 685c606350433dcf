package machineconfig

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
)

func TestCheckPatches_RefusesFormsThatOnlyTheMachineWouldRefuse(t *testing.T) {
	for patch, says := range map[string]string{
		"machine: {registries: {mirrors: {docker.io: {endpoints: [mirror.home.arpa]}}}}": "machine.registries.mirrors.docker.io." +
			"endpoints[0]: is no URL; write it as https://mirror.example.com",
		"machine: {network: {extraHostEntries: [{ip: 10.0.0.300, aliases: [a.home.arpa]}]}}": "machine.network.extraHostEntries[0].ip: " +
			"is no IP address; write one, such as 10.0.0.5",
		"machine: {network: {extraHostEntries: [{ip: 10.0.0.3, aliases: [bad host]}]}}": "machine.network.extraHostEntries[0].aliases[0]: " +
			"is no host name; write a host name, such as git.example.com",
		"machine: {logging: {destinations: [{endpoint: 'udp://10.0.0.5/', format: json_lines}]}}": "machine.logging.destinations[0]." +
			"endpoint: is no address with a port; write it as tcp://10.0.0.5:6051 or udp://10.0.0.5:6051",
		"machine: {kernel: {modules: [{name: br_netfilter.ko}]}}": "machine.kernel.modules[0].name: is no name of a kernel module; " +
			"write the name alone; parameters have a key of their own",
		"cluster: {extraManifests: [/etc/a.yaml]}": "cluster.extraManifests[0]: is no URL from which Talos can fetch; write one that " +
			"begins with https://",
		"cluster: {inlineManifests: [{name: a, contents: 'kind: Namespace'}]}": "cluster.inlineManifests[0].contents: is no manifest: each " +
			"document needs apiVersion, kind and metadata.name; correct it; nothing renders templates here",
		"cluster: {apiServer: {auditPolicy: {rules: [{level: MetaData}]}}}": "cluster.apiServer.auditPolicy.rules[0].level: is no word that " +
			"the component knows; write None, Metadata, Request or RequestResponse",
		"cluster: {apiServer: {auditPolicy: {rules: [{level: None, namespace: [a]}]}}}": "cluster.apiServer.auditPolicy.rules[0].namespace: " +
			"is no key that the component knows; did you mean namespaces?",
		"cluster: {scheduler: {config: {profile: []}}}": "cluster.scheduler.config.profile: profile is no field of " +
			"KubeSchedulerConfiguration in Kubernetes 1.35; did you mean profiles?",
		"machine: {kubelet: {extraConfig: {evictionHard: {memory.available: 500MB}}}}": "machine.kubelet.extraConfig.evictionHard." +
			"memory.available: is neither a quantity nor a share; write one, such as 500Mi or 10%",
		"machine: {kubelet: {extraConfig: {evictionHard: {mem.available: 5%}}}}": "machine.kubelet.extraConfig.evictionHard.mem.available: " +
			"is no key that the component knows; did you mean memory.available?",
		"machine: {kubelet: {extraConfig: {memorySwap: {swapBehavior: limited}}}}": "machine.kubelet.extraConfig.memorySwap.swapBehavior: " +
			"is no word that the component knows; write NoSwap or LimitedSwap",
		"cluster: {apiServer: {resources: {requests: {cpu: half}}}}": "cluster.apiServer.resources.requests.cpu: is no quantity of " +
			"Kubernetes; write one, such as 500m of cpu or 256Mi of memory",
		"cluster: {apiServer: {admissionControl: [{name: PodSecurity, configuration: {defaults: {enforce-version: '1.36'}}}]}}": "cluster." +
			"apiServer.admissionControl[0].configuration.defaults.enforce-version: is no version of the standards; write latest, or one such " +
			"as v1.36",
		"cluster: {apiServer: {admissionControl: [{name: PodSecurity, configuration: {exemptions: {namespace: [a]}}}]}}": "cluster.apiServer." +
			"admissionControl[0].configuration.exemptions.namespace: is no key that the component knows; did you mean namespaces?",
		"cluster: {apiServer: {authorizationConfig: [{type: RBAC, name: a}, {type: RBAC, name: b}]}}": "cluster.apiServer." +
			"authorizationConfig[1].type: is that of another authorizer, and only webhooks may be several; remove it",
		"cluster: {apiServer: {authorizationConfig: [{type: RBAC, name: a, webhook: {timeout: 3s}}]}}": "cluster.apiServer." +
			"authorizationConfig[0].webhook: is only taken of the type Webhook; remove it",
		"cluster: {apiServer: {authorizationConfig: [{type: Node, name: Node}]}}": "cluster.apiServer.authorizationConfig[0].name: is no " +
			"name of an authorizer; write lower-case letters, digits, - and .",
		"cluster: {scheduler: {config: {percentageOfNodesToScore: 200}}}": "cluster.scheduler.config.percentageOfNodesToScore: is not from 0 " +
			"to 100; write a number, such as 50",
		"machine: {kubelet: {extraConfig: {cpuCFSQuotaPeriod: 5s}}}": "machine.kubelet.extraConfig.cpuCFSQuotaPeriod: is no duration from " +
			"1ms to 1s; write one, such as 100ms",
		"machine: {kubelet: {extraConfig: {memoryThrottlingFactor: 1.5}}}": "machine.kubelet.extraConfig.memoryThrottlingFactor: is not " +
			"above 0 and at most 1; write a number, such as 0.9",
		"machine: {kubelet: {extraConfig: {podLogsDir: /var/log/pods/}}}": "machine.kubelet.extraConfig.podLogsDir: is no whole path; begin " +
			"it with a /, and end it without",
		"machine: {kubelet: {extraConfig: {shutdownGracePeriodCriticalPods: 500ms}}}": "machine.kubelet.extraConfig." +
			"shutdownGracePeriodCriticalPods: is neither 0s nor a duration of at least 1s; write one, such as 10s",
		"machine: {pods: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}]}": "machine.pods[0].kind: is not that of a pod; " +
			"write a pod of v1, and other objects in inlineManifests",
		"machine: {registries: {config: {docker.io/library: {tls: {insecureSkipVerify: true}}}}}": "machine.registries.config." +
			"docker.io/library: has a path; did you mean docker.io?",
		"machine: {sysctls: {vm.swappiness: '1', vm/swappiness: '2'}}": "machine.sysctls.vm.swappiness: is given twice, with dots and with " +
			"slashes; keep one",
		"{apiVersion: v1alpha1, kind: RegistryMirrorConfig, name: 'https://docker.io', endpoints: [{url: 'https://a.b'}]}": "RegistryMirror" +
			"Config https://docker.io: is not a registry; did you mean docker.io?",
		"{apiVersion: v1alpha1, kind: RawVolumeConfig, name: a, provisioning: {diskSelector: {match: system_disk}, minSize: 10TiB}}": "Raw" +
			"VolumeConfig a: has to be larger than the system disk; lower provisioning.minSize, or raise nodePools[].disk",
	} {
		violations := CheckPatches(sample(t, func(c *cluster.Cluster) { c.Talos.Patches.ControlPlanes = patches(patch) }))
		if assert.Len(t, violations, 1, patch) {
			assert.Equal(t, "talos.patches.controlPlanes[0]: "+says, violations[0].Error())
		}
	}
	for patch, says := range map[string]string{
		"machine: {files: [{path: /opt/a, op: create, permissions: 420, content: a}]}": "machine.files[0].path: is outside of /var, " +
			"where Talos creates no " +
			"file; write one below /var",
		"machine: {files: [{path: var/a, op: create, permissions: 420, content: a}]}": "path: is no whole path; begin it with a /",
		"machine: {files: [{path: /var/a, op: write, permissions: 420, content: a}]}": "op: is no operation that Talos knows; write create, " +
			"append or overwrite",
	} {
		violations := CheckPatches(sample(t, func(c *cluster.Cluster) { c.Talos.Patches.ControlPlanes = patches(patch) }))
		if assert.Len(t, violations, 1, patch) {
			assert.Contains(t, violations[0].Error(), says)
		}
	}
	assert.Empty(t, CheckPatches(sample(t, func(c *cluster.Cluster) {
		c.Talos.Patches.ControlPlanes = patches("machine: {files: [{path: /var/lib/a, op: create, permissions: 0o644, content: a}, "+
			"{path: /etc/resolv.conf, op: overwrite, permissions: 420, content: a}], kernel: {modules: [{name: nbd, parameters: [a=1]}]}, "+
			"logging: {destinations: [{endpoint: 'tcp://[fd00::1]:6051', format: json_lines}, {endpoint: 'udp://logs.home.arpa:6051/', "+
			"format: json_lines}]}, network: {extraHostEntries: [{ip: fd00::1, aliases: [a_b, b.home.arpa.]}], searchDomains: [.]}, "+
			"sysctls: {vm.swappiness: '0'}, "+
			"registries: {mirrors: {docker.io: {endpoints: ['http://10.0.0.9:5000/v2']}}}}\n"+
			"cluster: {extraManifests: ['https://git.home.arpa/a/b.yaml?ref=main'], inlineManifests: [{name: a, contents: \"apiVersion: v1\\n"+
			"kind: Namespace\\nmetadata: {name: a}\\n---\\napiVersion: v1\\nkind: List\\nitems: []\\n\"}], apiServer: {auditPolicy: {"+
			"apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], rules: [{level: None, nonResourceURLs: ['/healthz*'], "+
			"userGroups: [a]}, {level: Request, resources: [{group: apps, resources: [deployments]}]}]}, extraVolumes: [{hostPath: /var/a, "+
			"mountPath: /etc/kubernetes/a, readonly: true}]}, scheduler: {config: {profiles: [{schedulerName: default-scheduler}]}}}",
			"machine: {kubelet: {extraConfig: {evictionHard: {memory.available: 5%, nodefs.available: 1Gi, pid.available: 10%}, "+
				"systemReserved: {cpu: 100m, memory: 1Gi}, logging: {format: json}}}, udev: {rules: ['SUBSYSTEM==\"drm\", GROUP=\"44\"', '# a']}}")
	})))
}

// Each was refused once, or nearly: Talos, Kubernetes or the kernel takes it.
func TestCheckPatches_TakesWhatOnlyLooksWrong(t *testing.T) {
	for _, patch := range []string{
		"machine: {registries: {mirrors: {docker.io: {endpoints: ['https://Mirror']}}, config: {Mirror: {tls: {insecureSkipVerify: true}}}}}",
		"{apiVersion: v1alpha1, kind: RegistryTLSConfig, name: mirror, insecureSkipVerify: true}",
		"machine: {sysctls: {kernel.core_pattern: \"core\\n\", net.ipv4.tcp_rmem: \"4096\\n131072\\n6291456\"}}",
		"machine: {sysctls: {vm.swappiness: '1', vm/swappiness: '1'}}",
		"machine: {kubelet: {extraArgs: {minimum-image-ttl-duration: 30s}, extraConfig: {imageMaximumGCAge: 1m}}}",
		"machine: {kubelet: {extraConfig: {reservedSystemCPUs: '', podLogsDir: '', containerLogMaxSize: '', logging: {format: ''}}}}",
		"machine: {kubelet: {extraConfig: {reservedSystemCPUs: 0-1, kubeReservedCgroup: ''}}}",
		"machine: {pods: [{apiVersion: core/v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: a.b/c:1}]}}]}",
	} {
		assert.Empty(t, CheckPatches(sample(t, func(c *cluster.Cluster) { c.Talos.Patches.ControlPlanes = patches(patch) })), patch)
	}
}
