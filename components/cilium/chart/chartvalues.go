package chart

import (
	"maps"

	"github.com/slipway-platform/slipway/cluster"
)

// agentCapabilities are the chart's defaults without SYS_MODULE, because Talos lets no workload load kernel modules.
var agentCapabilities = []string{
	"CHOWN", "KILL", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "SYS_ADMIN", "SYS_RESOURCE", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID",
}

var cleanStateCapabilities = []string{"NET_ADMIN", "SYS_ADMIN", "SYS_RESOURCE"}

// chart returns what Slipway sets in the chart, without certificates, at the chart's own paths. The chart ignores a path that it does not
// know; a test looks each of them up in the real chart.
func (v Values) chart() map[string]any {
	values := map[string]any{
		"cluster.name":         v.Identity.Name,
		"cluster.id":           v.Identity.ID,
		"kubeProxyReplacement": true,
		// KubePrism's address: the agents need the API server before they can route to the VIP or to any Service.
		"k8sServiceHost": "localhost",
		"k8sServicePort": cluster.KubePrismPort,
		// Kubernetes assigns each node its part of the pod CIDRs that Talos configures. Cilium has no pool of its own that could differ.
		"ipam.mode":    "kubernetes",
		"ipv4.enabled": true,
		"ipv6.enabled": v.Network.IPv6 != nil,
		// Set with a tunnel, too, where only masquerading reads it: it must always equal Talos's pod CIDR.
		"ipv4NativeRoutingCIDR": v.Network.PodCIDR.String(),
		"enableIPv4Masquerade":  true,
		"enableIPv6Masquerade":  v.Network.IPv6 != nil,
		"bpf.masquerade":        v.Cilium.Masquerade == cluster.MasqueradeBPF,
		// Service addresses are translated when a pod connects, in the pods' own namespaces as well: packets then need no
		// translation. A limit to the host's namespace suits proxies that must see a Service's address inside a pod. It would
		// also solve the conflict between Talos's host DNS and BPF masquerading, but forwarding to host DNS is off instead.
		"socketLB.hostNamespaceOnly": false,
		// Talos has mounted cgroup2 already and refuses a second mount. The chart silently ignores any other spelling of autoMount.
		"cgroup.autoMount.enabled": false,
		"cgroup.hostRoot":          "/sys/fs/cgroup",

		"securityContext.capabilities.ciliumAgent":      agentCapabilities,
		"securityContext.capabilities.cleanCiliumState": cleanStateCapabilities,
		// Agents, operator, Envoy and relay read their configuration when they start. Without a roll-out, a changed option
		// would be in the ConfigMap and have no effect.
		"rollOutCiliumPods":        true,
		"operator.rollOutPods":     true,
		"envoy.rollOutPods":        true,
		"hubble.relay.rollOutPods": true,
		// The replicas are never on the same node: the second stays Pending until another node joins. The affinity is the chart's default;
		// it is set because this behaviour depends on it. Because of it, an update may stop all replicas at once: on one node, a new replica
		// would never get the place of the old one. The datapath works without the operator.
		"operator.replicas":                                    v.operators(),
		"operator.updateStrategy.type":                         "RollingUpdate",
		"operator.updateStrategy.rollingUpdate.maxSurge":       "25%",
		"operator.updateStrategy.rollingUpdate.maxUnavailable": "100%",
		"operator.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{
			"topologyKey":   "kubernetes.io/hostname",
			"labelSelector": map[string]any{"matchLabels": map[string]any{"io.cilium/app": "operator"}},
		}},
		// Envoy has its own DaemonSet, so that a restart of the agent does not break the connections through Envoy.
		"envoy.enabled": true,

		"hubble.enabled":          v.Cilium.Hubble.Enabled,
		"hubble.tls.auto.enabled": false,
		"hubble.relay.enabled":    v.Cilium.Hubble.HasRelay(),
		"hubble.ui.enabled":       v.Cilium.Hubble.UI,

		"bgpControlPlane.enabled": v.Network.LoadBalancers.Announce == cluster.AnnounceBGP,
		"l2announcements.enabled": v.Network.LoadBalancers.Announce == cluster.AnnounceL2,
		// ALPN enables HTTP/2, and so gRPC, with clients; appProtocol of a Service enables it with backends. Without them gateways
		// use HTTP/1.1, whatever routes declare.
		"gatewayAPI.enabled":           v.Cilium.GatewayAPI,
		"gatewayAPI.enableAlpn":        v.Cilium.GatewayAPI,
		"gatewayAPI.enableAppProtocol": v.Cilium.GatewayAPI,
		// Only traffic between pods is encrypted. The nodes' own connections use TLS, and an agent that cannot get its keys must
		// not disconnect its node from the API server.
		"encryption.enabled":        v.Cilium.Encryption == cluster.EncryptionWireGuard,
		"encryption.nodeEncryption": false,
		"bandwidthManager.enabled":  v.Cilium.BandwidthManager == cluster.BandwidthEDT || v.Cilium.BandwidthManager == cluster.BandwidthBBR,
		"bandwidthManager.bbr":      v.Cilium.BandwidthManager == cluster.BandwidthBBR,

		"clustermesh.useAPIServer": v.Mesh.IsMember(),
		// The gate reads the results of the agents' health probes, and nothing makes an agent probe at once: a round takes
		// (10 s + 100 s × ratio) × ln(1 + addresses). With the chart's default, 0.5, that is 144 s with 5 nodes and 318 s with
		// 100, and a node that joins is probed in the round after the current one. With 0 it is 24 s and 53 s; each of 100 agents
		// then sends 4 probes a second.
		"connectivityProbeFrequencyRatio": 0,

		"routingMode": "tunnel",
		// All nodes are on one layer-2 network: each agent adds routes to the other nodes' pods to its kernel. No router needs them.
		"autoDirectNodeRoutes": v.Cilium.Routing == cluster.RoutingNative,
	}
	v.choose(values)
	return place(map[string]any{}, values)
}

// operators returns the number of pods of Cilium's operator: two from the start, but one for a cluster of one machine, where the second
// would stay Pending for ever, and Argo CD would wait for it. In mode inline, only an engine changes the number when a machine is added.
func (v Values) operators() int {
	if len(v.Machines()) == 1 && (!v.Cilium.Inline() || v.Cilium.Owner.IsEngine()) {
		return 1
	}
	return 2
}

// choose sets what exists with some choices only.
func (v Values) choose(values map[string]any) {
	if v.Cilium.Routing == cluster.RoutingNative {
		values["routingMode"] = "native"
	}
	if six := v.Network.IPv6; six != nil {
		values["ipv6NativeRoutingCIDR"] = six.PodCIDR.String()
	}
	if v.Cilium.Encryption == cluster.EncryptionWireGuard {
		values["encryption.type"] = "wireguard"
	}
	if v.Cilium.GatewayAPI {
		// Always true: otherwise it would depend on whether the chart's renderer knows the CRDs.
		values["gatewayAPI.gatewayClass.create"] = "true"
	}
	if v.Network.LoadBalancers.Announce == cluster.AnnounceL2 {
		qps := agentQPS + min(v.Network.LoadBalancers.Size(), mostAnnounced)/leaseRenewal
		values["k8sClientRateLimit.qps"], values["k8sClientRateLimit.burst"] = qps, 2*qps
	}
	if v.Mesh.IsMember() {
		maps.Copy(values, v.clusterMesh())
	}
}

// The rate of an agent's requests to the API server with L2 announcements. Every 5 s a node renews the lease of each Service that it
// announces, and in the worst case one node announces all. Late renewals move addresses.
const (
	agentQPS      = 10  // Cilium's default limit, for everything else that an agent asks for
	leaseRenewal  = 5   // seconds; the chart's default
	mostAnnounced = 500 // Services that the limit suffices for, however large the pool is
)

// clusterMesh returns the values of the API server for peers, and the peers. The certificates of both must come from the shared CA, so
// they are set only with the mesh.
func (v Values) clusterMesh() map[string]any {
	var peers []any
	for _, peer := range v.Mesh.Clusters {
		// Kvstoremesh reaches a peer by PEER.mesh.cilium.io, which is in its certificate, and which the chart adds to its pods' hosts files.
		peers = append(peers, map[string]any{"name": peer.Name, "ips": []any{peer.Address.String()}, "port": cluster.MeshPort})
	}
	return map[string]any{
		// A policy that names no cluster is about pods of its own cluster, as without a mesh. Cilium's default differs between releases.
		"clustermesh.policyDefaultLocalCluster": true,

		"clustermesh.config.enabled":  true,
		"clustermesh.config.domain":   cluster.MeshDomain,
		"clustermesh.config.clusters": peers,
		// A copy of the peers' state in the cluster: agents read that, so that a peer serves one client for each cluster.
		"clustermesh.apiserver.kvstoremesh.enabled": true,
		// Etcd reads its own certificate at each handshake, but the CA of its clients only when it starts: another CA replaces the pods.
		"clustermesh.apiserver.podAnnotations": map[string]any{cluster.AnnotationMeshCA: cluster.Checksum(v.MeshAuthority().Certificate)},
		// LB-IPAM's annotation sets the addresses: spec.loadBalancerIP is deprecated and holds one address only.
		"clustermesh.apiserver.service.type":        "LoadBalancer",
		"clustermesh.apiserver.service.annotations": map[string]any{"lbipam.cilium.io/ips": v.Network.LoadBalancers.Mesh.String()},
		// Peers authenticate with a certificate of the shared CA for the user "remote".
		"clustermesh.apiserver.tls.authMode":     "legacy",
		"clustermesh.apiserver.tls.auto.enabled": false,
		// Slipway makes the Secrets of the mesh. The chart makes none from 1.20 on, but Flux may get these values while it still has an older
		// chart.
		"clustermesh.apiserver.tls.enableSecrets": false,
	}
}
