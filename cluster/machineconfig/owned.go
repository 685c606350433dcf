package machineconfig

import (
	"strings"
)

// owned are the parts of the configuration that belong to Slipway as a whole, by the key of the stack that declares them: no patch may
// change them, remove them or add to them. Further parts belong to Slipway because it renders them; see declared. Parts are dotted
// paths. Keys are compared without case, hyphens and underscores, because kubelet takes node_ip for node-ip and has the same setting
// as the field nodeIP. "*" at the end of a key is any ending.
var owned = []struct {
	key   string
	parts []string
}{
	{"cluster.name", []string{"cluster.clusterName"}},
	{"coreDNS", []string{"cluster.coreDNS"}},
	{"kubernetes.allowSchedulingOnControlPlanes", []string{
		"cluster.allowSchedulingOnControlPlanes", "cluster.allowSchedulingOnMasters",
	}},
	{"kubernetes.version", []string{
		"cluster.apiServer.image", "cluster.controllerManager.image", "cluster.scheduler.image", "machine.kubelet.image",
	}},
	{"network.nameservers", []string{"machine.network.nameservers", "ResolverConfig"}},
	{"network.nodeCIDR", []string{
		"cluster.etcd.advertisedSubnets", "cluster.etcd.listenSubnets", "cluster.etcd.subnet", "machine.kubelet.nodeIP",
		"machine.kubelet.*.nodeIP", "cluster.apiServer.extraArgs.advertise-address",
	}},
	{"network.nodeCIDR, network.gateway, network.vip and nodePools[].nodes[].address", []string{"machine.network.interfaces"}},
	{"network.ntp", []string{"machine.time.servers", "machine.time.disabled", "TimeSyncConfig"}},
	{"network.podCIDR", []string{
		"cluster.network.podSubnets", "cluster.controllerManager.extraArgs.cluster-cidr", "machine.kubelet.*.podCIDR",
	}},
	{"network.serviceCIDR", []string{
		"cluster.network.serviceSubnets", "cluster.apiServer.extraArgs.service-cluster-ip-range",
		"cluster.controllerManager.extraArgs.service-cluster-ip-range", "machine.kubelet.clusterDNS", "machine.kubelet.*.clusterDNS",
	}},
	{"network.vip", []string{"cluster.controlPlane.endpoint", "HCloudVIPConfig *", "Layer2VIPConfig *"}},
	{"nodePools[].dataDisks", []string{"machine.disks", "VolumeConfig *.provisioning.diskSelector"}},
	{"nodePools[].labels", []string{"machine.kubelet.extraArgs.node-labels"}},
	{"nodePools[].nodes[].name", []string{
		"machine.network.hostname", "HostnameConfig", "machine.kubelet.extraArgs.hostname-override", "machine.kubelet.registerWithFQDN",
	}},
	{"nodePools[].role", []string{"machine.type"}},
	{"nodePools[].taints", []string{"machine.kubelet.*.registerWithTaints"}},
	{"talos.diskEncryption", []string{"machine.systemDiskEncryption", "VolumeConfig *.encryption"}},
	{"talos.extensions", []string{"machine.install.extensions"}},
	{"talos.installDisk", []string{"machine.install.disk", "machine.install.diskSelector"}},
	{"talos.kubelet.maxPods", []string{"machine.kubelet.*.maxPods"}},
	{"talos.lldpd.config", []string{"ExtensionServiceConfig lldpd"}},
	{"talos.version", []string{"cluster.etcd.image"}},
	{"talos.version and talos.extensions", []string{"machine.install.image"}},

	// What no key declares: how nodes and components find and trust each other, and what the gates look at.
	{"", []string{
		"cluster.acceptedCAs", "cluster.aescbcEncryptionSecret", "cluster.aggregatorCA", "cluster.ca", "cluster.controlPlane",
		"cluster.discovery", "cluster.etcd.ca", "cluster.id", "cluster.network", "cluster.proxy", "cluster.secret",
		"cluster.secretboxEncryptionSecret", "cluster.serviceAccount", "cluster.token",
		"machine.acceptedCAs", "machine.ca", "machine.controlPlane", "machine.kubelet.skipNodeRegistration", "machine.token", "persist",

		"cluster.apiServer.extraArgs.authorization-config", "cluster.apiServer.extraArgs.authorization-mode",
		"cluster.apiServer.extraArgs.client-ca-file", "cluster.apiServer.extraArgs.encryption-provider-config*",
		"cluster.apiServer.extraArgs.etcd-cafile", "cluster.apiServer.extraArgs.etcd-certfile", "cluster.apiServer.extraArgs.etcd-keyfile",
		"cluster.apiServer.extraArgs.etcd-prefix", "cluster.apiServer.extraArgs.etcd-servers*",
		"cluster.apiServer.extraArgs.kubelet-certificate-authority", "cluster.apiServer.extraArgs.kubelet-client-*",
		"cluster.apiServer.extraArgs.kubelet-p*", "cluster.apiServer.extraArgs.kubelet-read-only-port",
		"cluster.apiServer.extraArgs.proxy-client-*", "cluster.apiServer.extraArgs.requestheader-*",
		"cluster.apiServer.extraArgs.secure-port", "cluster.apiServer.extraArgs.service-account-issuer",
		"cluster.apiServer.extraArgs.service-account-key-file", "cluster.apiServer.extraArgs.service-account-signing-*",
		"cluster.apiServer.extraArgs.tls-cert-file", "cluster.apiServer.extraArgs.tls-private-key-file",
		"cluster.controllerManager.extraArgs.allocate-node-cidrs", "cluster.controllerManager.extraArgs.authentication-kubeconfig",
		"cluster.controllerManager.extraArgs.authorization-kubeconfig", "cluster.controllerManager.extraArgs.cluster-signing-cert-file",
		"cluster.controllerManager.extraArgs.cluster-signing-k*", "cluster.controllerManager.extraArgs.cluster-signing-legacy-*",
		"cluster.controllerManager.extraArgs.kubeconfig", "cluster.controllerManager.extraArgs.node-cidr-mask-size*",
		"cluster.controllerManager.extraArgs.root-ca-file", "cluster.controllerManager.extraArgs.service-account-*",
		"cluster.scheduler.extraArgs.authentication-kubeconfig", "cluster.scheduler.extraArgs.authorization-kubeconfig",
		"cluster.scheduler.extraArgs.config", "cluster.scheduler.extraArgs.kubeconfig",
		"cluster.etcd.extraArgs.advertise-*", "cluster.etcd.extraArgs.auto-tls", "cluster.etcd.extraArgs.cert-file",
		"cluster.etcd.extraArgs.client-cert-auth", "cluster.etcd.extraArgs.data-dir",
		"cluster.etcd.extraArgs.discovery*", "cluster.etcd.extraArgs.initial-advertise-*", "cluster.etcd.extraArgs.initial-cluster*",
		"cluster.etcd.extraArgs.key-file", "cluster.etcd.extraArgs.listen-client-urls", "cluster.etcd.extraArgs.listen-peer-urls",
		"cluster.etcd.extraArgs.name", "cluster.etcd.extraArgs.peer-*", "cluster.etcd.extraArgs.trusted-ca-file",
		"machine.kubelet.*.clusterDomain", "machine.kubelet.*.registerNode", "machine.kubelet.*.staticPodPath",
		"machine.kubelet.extraArgs.bootstrap-kubeconfig", "machine.kubelet.extraArgs.cert-dir",
		"machine.kubelet.extraArgs.client-ca-file", "machine.kubelet.extraArgs.config", "machine.kubelet.extraArgs.config-dir",
		"machine.kubelet.extraArgs.container-runtime*",
		"machine.kubelet.extraArgs.kubeconfig", "machine.kubelet.extraArgs.pod-manifest-path",
	}},
}

// declared are the keys that declare what Slipway renders of parts to which patches may add.
var declared = map[string]string{
	"UserVolumeConfig *":            "nodePools[].dataDisks",
	"machine.kubelet.extraArgs":     "talos.kubelet.extraArgs",
	"machine.nodeLabels":            "nodePools[].labels",
	"machine.nodeTaints":            "nodePools[].taints",
	"machine.registries.mirrors":    "talos.registryMirrors",
	"machine.sysctls":               "talos.sysctls",
	"UserVolumeConfig *.encryption": "talos.diskEncryption",
}

const removeIt = "remove it"

// remedyFor names the key of the stack that declares a part. The longest part that holds a path decides.
func remedyFor(path []string) string {
	key, length := "", 0
	look := func(part, declares string) {
		if n := len(strings.Split(part, ".")); n > length && holds(part, path) {
			key, length = declares, n
		}
	}
	for _, row := range owned {
		for _, part := range row.parts {
			look(part, row.key)
		}
	}
	for part, declares := range declared {
		look(part, declares)
	}
	if key == "" {
		return removeIt
	}
	return "set " + key + " instead"
}

// isOwned tells whether a path is in a part that belongs to Slipway as a whole.
func isOwned(path []string) bool {
	for _, row := range owned {
		for _, part := range row.parts {
			if holds(part, path) {
				return true
			}
		}
	}
	return false
}

// holds tells whether a path is a part, or below it.
func holds(part string, path []string) bool {
	keys := strings.Split(part, ".")
	if len(keys) > len(path) {
		return false
	}
	for i, want := range keys {
		beginning, anyEnding := strings.CutSuffix(want, "*")
		key := plainName(path[i])
		if beginning = plainName(beginning); key != beginning && !(anyEnding && strings.HasPrefix(key, beginning)) {
			return false
		}
	}
	return true
}

// plainName is a name without case, hyphens, underscores and dots.
func plainName(name string) string { return strings.ToLower(separators.Replace(name)) }

var separators = strings.NewReplacer("-", "", "_", "", ".", "")
