package machineconfig

import (
	"strings"
	"unicode"
)

// allowance is a part of the configuration that patches may set. What no allowance names, no patch may set.
type allowance struct {
	// part is the dotted path of the part. It includes everything below. "*" is any one key; in the name of a document, it is any
	// name.
	part string
	// defaults tells that a patch may also change and remove what Talos generates there. Without it, a patch may only add: keys to
	// mappings, and items to lists.
	defaults bool
	// check returns why one addition is not allowed, and "" for one that is; nil means that every addition is. path is where the
	// value is added: the part, or below it.
	check func(c *comparison, path []string, value any) refusal
}

// refusal is why a patch may not do something. The zero value refuses nothing.
type refusal struct{ problem, remedy string }

// allowances are all parts that patches may set, because no part of Slipway relies on them. The first that covers a part decides.
var allowances = []allowance{
	{part: "debug", defaults: true},

	{part: "machine.baseRuntimeSpecOverrides"},
	{part: "machine.certSANs"},
	{part: "machine.env"},
	{part: "machine.features.diskQuotaSupport", defaults: true},
	{part: "machine.features.hostDNS.resolveMemberNames"},
	{part: "machine.features.kubernetesTalosAPIAccess"},
	{part: "machine.files", check: checkFile},
	{part: "machine.install.extraKernelArgs", check: checkKernelArgument},
	{part: "machine.install.grubUseUKICmdline", defaults: true},
	{part: "machine.kernel"},
	{part: "machine.kubelet.credentialProviderConfig"},
	{part: "machine.kubelet.disableManifestsDirectory", defaults: true},
	{part: "machine.kubelet.extraArgs.*", check: checkKubelet},
	{part: "machine.kubelet.extraConfig.*", check: checkKubelet},
	{part: "machine.kubelet.extraMounts", check: checkMount},
	{part: "machine.logging"},
	{part: "machine.network.disableSearchDomain"},
	{part: "machine.network.extraHostEntries"},
	{part: "machine.network.searchDomains"},
	{part: "machine.nodeAnnotations"},
	{part: "machine.nodeLabels.*", defaults: true, check: checkLabel},
	{part: "machine.nodeTaints.*", check: checkTaint},
	{part: "machine.pods"},
	{part: "machine.registries.mirrors.*.endpoints", check: checkMirrorEndpoint},
	{part: "machine.registries"},
	{part: "machine.seccompProfiles"},
	{part: "machine.sysctls.*", check: checkSysctl},
	{part: "machine.sysfs"},
	{part: "machine.time.bootTimeout"},
	{part: "machine.udev"},

	{part: "cluster.adminKubeconfig"},
	{part: "cluster.apiServer.admissionControl", check: checkAdmission},
	{part: "cluster.apiServer.auditPolicy", defaults: true},
	{part: "cluster.apiServer.authorizationConfig"},
	{part: "cluster.apiServer.certSANs"},
	{part: "cluster.apiServer.env"},
	{part: "cluster.apiServer.extraArgs.*", check: checkFlag(apiServerFlags)},
	{part: "cluster.apiServer.extraVolumes", check: checkVolumeMount},
	{part: "cluster.apiServer.resources"},
	{part: "cluster.controllerManager.env"},
	{part: "cluster.controllerManager.extraArgs.*", check: checkFlag(controllerManagerFlags)},
	{part: "cluster.controllerManager.extraVolumes", check: checkVolumeMount},
	{part: "cluster.controllerManager.resources"},
	{part: "cluster.etcd.extraArgs.*", check: checkFlag(etcdFlags)},
	{part: "cluster.extraManifestHeaders"},
	{part: "cluster.extraManifests"},
	{part: "cluster.inlineManifests"},
	{part: "cluster.scheduler.config"},
	{part: "cluster.scheduler.env"},
	{part: "cluster.scheduler.extraArgs.*", check: checkFlag(schedulerFlags)},
	{part: "cluster.scheduler.extraVolumes", check: checkVolumeMount},
	{part: "cluster.scheduler.resources"},

	{part: "BondConfig *", check: checkLink},
	{part: "BridgeConfig *", check: checkLink},
	{part: "DummyLinkConfig *", check: checkLink},
	{part: "EthernetConfig *"},
	{part: "EventSinkConfig"},
	{part: "ExistingVolumeConfig *", check: checkExistingVolume},
	{part: "ExtensionServiceConfig *", check: checkExtension},
	{part: "KmsgLogConfig *"},
	{part: "LinkConfig *", check: checkLink},
	{part: "NetworkDefaultActionConfig", check: checkFirewall},
	{part: "NetworkRuleConfig *", check: checkFirewallRule},
	{part: "OOMConfig"},
	{part: "PCIDriverRebindConfig *"},
	{part: "RawVolumeConfig *", check: checkVolume},
	{part: "RegistryAuthConfig *"},
	{part: "RegistryMirrorConfig *", check: checkMirror},
	{part: "RegistryTLSConfig *"},
	{part: "StaticHostConfig *"},
	{part: "SwapVolumeConfig *", check: checkVolume},
	{part: "TrustedRootsConfig *"},
	{part: "UserVolumeConfig *", check: checkVolume},
	{part: "VLANConfig *", check: checkLink},
	{part: "VolumeConfig EPHEMERAL.provisioning.maxSize"},
	{part: "VolumeConfig EPHEMERAL.provisioning.minSize"},
	{part: "WatchdogTimerConfig"},
	{part: "WireguardConfig *", check: checkLink},
	{part: "ZswapConfig"},
}

// declarations are the keys of the stack that declare what patches may not set. The longest part that holds a path decides.
var declarations = []struct{ part, key string }{
	{"HostnameConfig", "nodePools[].nodes[].name"},
	{"HCloudVIPConfig *", "network.vip"},
	{"Layer2VIPConfig *", "network.vip"},
	{"ResolverConfig", "network.nameservers"},
	{"TimeSyncConfig", "network.ntp"},
	{"UserVolumeConfig *", "nodePools[].dataDisks"},
	{"UserVolumeConfig *.encryption", "talos.diskEncryption"},
	{"VolumeConfig *.encryption", "talos.diskEncryption"},
	{"ExtensionServiceConfig lldpd", "talos.lldpd.config"},
	{"cluster.allowSchedulingOnControlPlanes", "kubernetes.allowSchedulingOnControlPlanes"},
	{"cluster.allowSchedulingOnMasters", "kubernetes.allowSchedulingOnControlPlanes"},
	{"cluster.apiServer.image", "kubernetes.version"},
	{"cluster.clusterName", "cluster.name"},
	{"cluster.controlPlane.endpoint", "network.vip"},
	{"cluster.controllerManager.image", "kubernetes.version"},
	{"cluster.coreDNS", "coreDNS"},
	{"cluster.etcd.advertisedSubnets", "network.nodeCIDR"},
	{"cluster.etcd.listenSubnets", "network.nodeCIDR"},
	{"cluster.etcd.subnet", "network.nodeCIDR"},
	{"cluster.network.podSubnets", "network.podCIDR"},
	{"cluster.network.serviceSubnets", "network.serviceCIDR"},
	{"cluster.proxy.image", "kubernetes.version"},
	{"cluster.scheduler.image", "kubernetes.version"},
	{"machine.disks", "nodePools[].dataDisks"},
	{"machine.install.disk", "talos.installDisk"},
	{"machine.install.diskSelector", "talos.installDisk"},
	{"machine.install.extensions", "talos.extensions"},
	{"machine.install.image", "talos.version and talos.extensions"},
	{"machine.kubelet.clusterDNS", "network.serviceCIDR"},
	{"machine.kubelet.extraArgs", "talos.kubelet.extraArgs"},
	{"machine.kubelet.extraConfig.maxPods", "talos.kubelet.maxPods"},
	{"machine.kubelet.image", "kubernetes.version"},
	{"machine.kubelet.nodeIP", "network.nodeCIDR"},
	{"machine.network.hostname", "nodePools[].nodes[].name"},
	{"machine.network.interfaces", "network.nodeCIDR, network.gateway, network.vip and nodePools[].nodes[].address"},
	{"machine.network.nameservers", "network.nameservers"},
	{"machine.nodeLabels", "nodePools[].labels"},
	{"machine.nodeTaints", "nodePools[].taints"},
	{"machine.registries.mirrors", "talos.registryMirrors"},
	{"machine.sysctls", "talos.sysctls"},
	{"machine.systemDiskEncryption", "talos.diskEncryption"},
	{"machine.time", "network.ntp"},
	{"machine.type", "nodePools[].role"},
}

// remedyFor names the key of the stack that declares a part.
func remedyFor(path []string) string {
	key, length := "", 0
	for _, declared := range declarations {
		if pattern := segments(declared.part); len(pattern) > length && len(pattern) <= len(path) && matches(pattern, path) {
			key, length = declared.key, len(pattern)
		}
	}
	if key == "" {
		return removeIt
	}
	return "set " + key + " instead"
}

const removeIt = "remove it"

// allowanceFor returns the allowance that covers a part.
func allowanceFor(path []string) (allowance, bool) {
	for _, allowed := range allowances {
		if pattern := segments(allowed.part); len(pattern) <= len(path) && matches(pattern, path) {
			return allowed, true
		}
	}
	return allowance{}, false
}

// mayHoldAllowed tells whether an allowance covers something below a part.
func mayHoldAllowed(path []string) bool {
	for _, allowed := range allowances {
		if pattern := segments(allowed.part); len(pattern) > len(path) && matches(pattern[:len(path)], path) {
			return true
		}
	}
	return false
}

func segments(part string) []string { return strings.Split(part, ".") }

// matches compares the keys of a pattern with the first ones of a path.
func matches(pattern, path []string) bool {
	for i, want := range pattern {
		kind, anyName := strings.CutSuffix(want, " *")
		switch {
		case want == "*", want == path[i]:
		case anyName && strings.HasPrefix(path[i], kind+" "):
		default:
			return false
		}
	}
	return true
}

// wholeDocument tells whether the allowance covers a document other than the oldest one, whose parts begin in lower case.
func (a allowance) wholeDocument() bool {
	return len(segments(a.part)) == 1 && unicode.IsUpper(rune(a.part[0]))
}
