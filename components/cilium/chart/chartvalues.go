package chart

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/slipway-platform/slipway/cluster"
)

// chartValues is the part of the chart's values that Slipway sets, under the chart's own keys. The chart ignores a key that it
// does not know; a test looks each key up in the real chart.
type chartValues struct {
	Cluster               identity        `json:"cluster"`
	KubeProxyReplacement  bool            `json:"kubeProxyReplacement"`
	K8sServiceHost        string          `json:"k8sServiceHost"`
	K8sServicePort        int             `json:"k8sServicePort"`
	K8sClientRateLimit    *rateLimit      `json:"k8sClientRateLimit,omitempty"`
	IPAM                  ipam            `json:"ipam"`
	IPv4                  toggle          `json:"ipv4"`
	IPv6                  toggle          `json:"ipv6"`
	RoutingMode           string          `json:"routingMode"`
	AutoDirectNodeRoutes  bool            `json:"autoDirectNodeRoutes"`
	IPv4NativeRoutingCIDR string          `json:"ipv4NativeRoutingCIDR"`
	IPv6NativeRoutingCIDR string          `json:"ipv6NativeRoutingCIDR,omitempty"`
	EnableIPv4Masquerade  bool            `json:"enableIPv4Masquerade"`
	EnableIPv6Masquerade  bool            `json:"enableIPv6Masquerade"`
	BPF                   bpf             `json:"bpf"`
	SocketLB              socketLB        `json:"socketLB"`
	Cgroup                cgroup          `json:"cgroup"`
	SecurityContext       securityContext `json:"securityContext"`
	RollOutCiliumPods     bool            `json:"rollOutCiliumPods"`
	Operator              operator        `json:"operator"`
	Envoy                 envoy           `json:"envoy"`
	Hubble                hubble          `json:"hubble"`
	GatewayAPI            gatewayAPI      `json:"gatewayAPI"`
	BGPControlPlane       toggle          `json:"bgpControlPlane"`
	L2Announcements       toggle          `json:"l2announcements"`
	Encryption            encryption      `json:"encryption"`
	BandwidthManager      bandwidth       `json:"bandwidthManager"`
	ClusterMesh           clusterMesh     `json:"clustermesh"`

	ConnectivityProbeFrequencyRatio float64 `json:"connectivityProbeFrequencyRatio"`
}

type (
	toggle struct {
		Enabled bool `json:"enabled"`
	}
	identity struct {
		Name string `json:"name"`
		ID   int    `json:"id"`
	}
	rateLimit struct {
		QPS   int `json:"qps"`
		Burst int `json:"burst"`
	}
	ipam struct {
		Mode string `json:"mode"`
	}
	bpf struct {
		Masquerade bool `json:"masquerade"`
	}
	socketLB struct {
		HostNamespaceOnly bool `json:"hostNamespaceOnly"`
	}
	cgroup struct {
		// autoMount has a capital M. The chart silently ignores any other spelling.
		AutoMount toggle `json:"autoMount"`
		HostRoot  string `json:"hostRoot"`
	}
	securityContext struct {
		Capabilities capabilities `json:"capabilities"`
	}
	capabilities struct {
		CiliumAgent      []string `json:"ciliumAgent"`
		CleanCiliumState []string `json:"cleanCiliumState"`
	}
	operator struct {
		Replicas       int            `json:"replicas"`
		RollOutPods    bool           `json:"rollOutPods"`
		UpdateStrategy updateStrategy `json:"updateStrategy"`
		Affinity       affinity       `json:"affinity"`
	}
	updateStrategy struct {
		Type          string        `json:"type"`
		RollingUpdate rollingUpdate `json:"rollingUpdate"`
	}
	rollingUpdate struct {
		MaxSurge       string `json:"maxSurge"`
		MaxUnavailable string `json:"maxUnavailable"`
	}
	affinity struct {
		PodAntiAffinity podAntiAffinity `json:"podAntiAffinity"`
	}
	podAntiAffinity struct {
		Required []affinityTerm `json:"requiredDuringSchedulingIgnoredDuringExecution"`
	}
	affinityTerm struct {
		TopologyKey   string        `json:"topologyKey"`
		LabelSelector labelSelector `json:"labelSelector"`
	}
	labelSelector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	}
	envoy struct {
		Enabled         bool                 `json:"enabled"`
		RollOutPods     bool                 `json:"rollOutPods"`
		SecurityContext envoySecurityContext `json:"securityContext"`
	}
	envoySecurityContext struct {
		Capabilities envoyCapabilities `json:"capabilities"`
	}
	envoyCapabilities struct {
		Envoy                 []string `json:"envoy"`
		KeepCapNetBindService bool     `json:"keepCapNetBindService"`
	}
	hubble struct {
		Enabled bool        `json:"enabled"`
		TLS     hubbleTLS   `json:"tls"`
		Relay   hubbleRelay `json:"relay"`
		UI      toggle      `json:"ui"`
	}
	hubbleTLS struct {
		Auto toggle `json:"auto"`
	}
	hubbleRelay struct {
		Enabled     bool `json:"enabled"`
		RollOutPods bool `json:"rollOutPods"`
	}
	gatewayAPI struct {
		Enabled           bool          `json:"enabled"`
		EnableALPN        bool          `json:"enableAlpn"`
		EnableAppProtocol bool          `json:"enableAppProtocol"`
		GatewayClass      *gatewayClass `json:"gatewayClass,omitempty"`
	}
	gatewayClass struct {
		Create string `json:"create"`
	}
	encryption struct {
		Enabled        bool   `json:"enabled"`
		Type           string `json:"type,omitempty"`
		NodeEncryption bool   `json:"nodeEncryption"`
	}
	bandwidth struct {
		Enabled bool `json:"enabled"`
		BBR     bool `json:"bbr"`
	}
	clusterMesh struct {
		UseAPIServer       bool           `json:"useAPIServer"`
		PolicyLocalCluster bool           `json:"policyDefaultLocalCluster,omitempty"`
		Config             *meshConfig    `json:"config,omitempty"`
		APIServer          *meshAPIServer `json:"apiserver,omitempty"`
	}
	meshConfig struct {
		Enabled  bool       `json:"enabled"`
		Domain   string     `json:"domain"`
		Clusters []meshPeer `json:"clusters"`
	}
	meshPeer struct {
		Name string   `json:"name"`
		IPs  []string `json:"ips"`
		Port int      `json:"port"`
	}
	meshAPIServer struct {
		KVStoreMesh    toggle            `json:"kvstoremesh"`
		PodAnnotations map[string]string `json:"podAnnotations"`
		Service        meshService       `json:"service"`
		TLS            meshTLS           `json:"tls"`
	}
	meshService struct {
		Type        string            `json:"type"`
		Annotations map[string]string `json:"annotations"`
	}
	meshTLS struct {
		AuthMode string `json:"authMode"`
		Auto     toggle `json:"auto"`
		// Slipway makes the Secrets of the mesh. The chart makes none from 1.20 on, but Flux may still have the one before when it gets these.
		EnableSecrets bool `json:"enableSecrets"`
	}
)

// agentCapabilities are the chart's defaults without SYS_MODULE, because Talos lets no workload load kernel modules.
var agentCapabilities = []string{
	"CHOWN", "KILL", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "SYS_ADMIN", "SYS_RESOURCE", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID",
}

var cleanStateCapabilities = []string{"NET_ADMIN", "SYS_ADMIN", "SYS_RESOURCE"}

// envoyCaps are the chart's defaults. They lack NET_BIND_SERVICE: gateways listen on load-balancer addresses, whose traffic BPF
// redirects to Envoy's high ports. Only listeners on the host's own ports below 1024 would need it.
var envoyCaps = []string{"NET_ADMIN", "SYS_ADMIN"}

// chart returns the chart values for the choices, without certificates.
func (v Values) chart() chartValues {
	values := chartValues{
		Cluster:              identity{Name: v.Identity.Name, ID: v.Identity.ID},
		KubeProxyReplacement: true,
		// KubePrism's address: the agents need the API server before they can route to the VIP or to any Service.
		K8sServiceHost: "localhost",
		K8sServicePort: cluster.KubePrismPort,
		// Kubernetes assigns each node its part of the pod CIDRs that Talos configures. Cilium has no pool of its own that could differ.
		IPAM: ipam{Mode: "kubernetes"},
		IPv4: toggle{true},
		IPv6: toggle{v.Network.IPv6 != nil},
		// Set with a tunnel, too, where only masquerading reads it: it must always equal Talos's pod CIDR.
		IPv4NativeRoutingCIDR: v.Network.PodCIDR.String(),
		EnableIPv4Masquerade:  true,
		EnableIPv6Masquerade:  v.Network.IPv6 != nil,
		BPF:                   bpf{Masquerade: v.Cilium.Masquerade == cluster.MasqueradeBPF},
		// Service addresses are translated when a pod connects, in the pods' own namespaces as well: packets then need no
		// translation. A limit to the host's namespace suits proxies that must see a Service's address inside a pod. It would
		// also solve the conflict between Talos's host DNS and BPF masquerading, but forwarding to host DNS is off instead.
		SocketLB: socketLB{HostNamespaceOnly: false},
		// Talos has mounted cgroup2 already and refuses a second mount.
		Cgroup: cgroup{AutoMount: toggle{false}, HostRoot: "/sys/fs/cgroup"},
		SecurityContext: securityContext{Capabilities: capabilities{
			CiliumAgent:      slices.Clone(agentCapabilities),
			CleanCiliumState: slices.Clone(cleanStateCapabilities),
		}},
		// Agents, operator, Envoy and relay read their configuration when they start. Without a roll-out, a changed option
		// would be in the ConfigMap and have no effect.
		RollOutCiliumPods: true,
		// Two replicas from the start, never on the same node: with one node the second stays Pending, and starts by itself when
		// another node joins. The affinity is the chart's default; it is set because this behaviour depends on it. It is also why
		// an update may stop all replicas at once: with one node, a new replica would never get the place of the old one. The
		// datapath works without the operator.
		Operator: operator{
			Replicas:    2,
			RollOutPods: true,
			UpdateStrategy: updateStrategy{
				Type: "RollingUpdate", RollingUpdate: rollingUpdate{MaxSurge: "25%", MaxUnavailable: "100%"},
			},
			Affinity: affinity{PodAntiAffinity: podAntiAffinity{Required: []affinityTerm{{
				TopologyKey:   "kubernetes.io/hostname",
				LabelSelector: labelSelector{MatchLabels: map[string]string{"io.cilium/app": "operator"}},
			}}}},
		},
		// Envoy has its own DaemonSet, so that a restart of the agent does not break the connections through Envoy.
		Envoy: envoy{Enabled: true, RollOutPods: true, SecurityContext: envoySecurityContext{
			Capabilities: envoyCapabilities{Envoy: slices.Clone(envoyCaps), KeepCapNetBindService: false},
		}},
		Hubble: hubble{
			Enabled: v.Cilium.Hubble.Enabled, TLS: hubbleTLS{Auto: toggle{false}},
			Relay: hubbleRelay{Enabled: v.Cilium.Hubble.HasRelay(), RollOutPods: true}, UI: toggle{v.Cilium.Hubble.UI},
		},
		BGPControlPlane: toggle{v.Network.LoadBalancers.Announce == cluster.AnnounceBGP},
		L2Announcements: toggle{v.Network.LoadBalancers.Announce == cluster.AnnounceL2},
		ClusterMesh:     v.clusterMesh(),
		// The gate reads the results of the agents' health probes, and nothing makes an agent probe at once: a round takes
		// (10 s + 100 s × ratio) × ln(1 + addresses). With the chart's default, 0.5, that is 144 s with 5 nodes and 318 s with
		// 100, and a node that joins is probed in the round after the current one. With 0 it is 24 s and 53 s; each of 100 agents
		// then sends 4 probes a second.
		ConnectivityProbeFrequencyRatio: 0,
	}
	v.route(&values)
	v.serveGateways(&values)
	v.shape(&values)
	return values
}

// route sets how packets are routed between nodes.
func (v Values) route(values *chartValues) {
	values.RoutingMode = "tunnel"
	if v.Cilium.Routing == cluster.RoutingNative {
		// All nodes are on one layer-2 network: each agent adds routes to the other nodes' pods to its kernel. No router needs
		// them.
		values.RoutingMode, values.AutoDirectNodeRoutes = "native", true
	}
	if six := v.Network.IPv6; six != nil {
		values.IPv6NativeRoutingCIDR = six.PodCIDR.String()
	}
	if v.Cilium.Encryption == cluster.EncryptionWireGuard {
		// Only traffic between pods is encrypted. The nodes' own connections use TLS, and an agent that cannot get its keys must
		// not disconnect its node from the API server.
		values.Encryption = encryption{Enabled: true, Type: "wireguard"}
	}
}

// serveGateways sets the values for the Gateway API.
func (v Values) serveGateways(values *chartValues) {
	if !v.Cilium.GatewayAPI {
		return
	}
	values.GatewayAPI = gatewayAPI{
		Enabled: true,
		// ALPN enables HTTP/2, and so gRPC, with clients; appProtocol of a Service enables it with backends. Without them gateways
		// use HTTP/1.1, whatever routes declare.
		EnableALPN: true, EnableAppProtocol: true,
		// Always true: otherwise it would depend on whether the chart's renderer knows the CRDs.
		GatewayClass: &gatewayClass{Create: "true"},
	}
}

// The rate of an agent's requests to the API server with L2 announcements. Every 5 s a node renews the lease of each Service that it
// announces, and in the worst case one node announces all. Late renewals move addresses.
const (
	agentQPS      = 10  // Cilium's default limit, for everything else that an agent asks for
	leaseRenewal  = 5   // seconds; the chart's default
	mostAnnounced = 500 // Services that the limit suffices for, however large the pool is
)

// shape sets the limits and the acceleration of traffic, and the agents' request rate to the API server.
func (v Values) shape(values *chartValues) {
	switch v.Cilium.BandwidthManager {
	case cluster.BandwidthEDT:
		values.BandwidthManager = bandwidth{Enabled: true}
	case cluster.BandwidthBBR:
		values.BandwidthManager = bandwidth{Enabled: true, BBR: true}
	}
	if v.Network.LoadBalancers.Announce == cluster.AnnounceL2 {
		qps := agentQPS + min(v.Network.LoadBalancers.Size(), mostAnnounced)/leaseRenewal
		values.K8sClientRateLimit = &rateLimit{QPS: qps, Burst: 2 * qps}
	}
}

// fingerprint returns a checksum of a text that is not secret.
func fingerprint(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// clusterMesh returns the values of the API server for peers, and the peers. The certificates of both must come from the shared CA, so
// they are set only with the mesh.
func (v Values) clusterMesh() clusterMesh {
	if !v.Mesh.IsMember() {
		return clusterMesh{}
	}
	config := &meshConfig{Enabled: true, Domain: cluster.MeshDomain}
	for _, peer := range v.Mesh.Clusters {
		// Kvstoremesh reaches a peer by PEER.mesh.cilium.io, which is in its certificate, and which the chart adds to its pods' hosts files.
		config.Clusters = append(config.Clusters, meshPeer{Name: peer.Name, IPs: []string{peer.Address.String()}, Port: cluster.MeshPort})
	}
	// A policy that names no cluster is about pods of its own cluster, as without a mesh. Cilium's default differs between releases.
	return clusterMesh{UseAPIServer: true, PolicyLocalCluster: true, Config: config, APIServer: &meshAPIServer{
		// A copy of the peers' state in the cluster: agents read that, so that a peer serves one client for each cluster.
		KVStoreMesh: toggle{true},
		// Etcd reads its own certificate at each handshake, but the CA of its clients only when it starts: another CA replaces the pods.
		PodAnnotations: map[string]string{cluster.AnnotationMeshCA: fingerprint(v.MeshAuthority().Certificate)},
		// LB-IPAM's annotation sets the addresses: spec.loadBalancerIP is deprecated and holds one address only.
		Service: meshService{Type: "LoadBalancer", Annotations: map[string]string{
			"lbipam.cilium.io/ips": v.Network.LoadBalancers.Mesh.String(),
		}},
		// Peers authenticate with a certificate of the shared CA for the user "remote".
		TLS: meshTLS{AuthMode: "legacy", Auto: toggle{false}},
	}}
}
