package cilium

import (
	"slices"

	"github.com/slipway-platform/slipway/cluster"
)

// chartValues mirrors the part of the chart's values that Slipway sets, in the chart's own words. The chart ignores a
// word it does not know; a test looks each of them up in the real chart.
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
		// autoMount, with a capital M: the chart ignores any other spelling in silence.
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
		UseAPIServer bool           `json:"useAPIServer"`
		APIServer    *meshAPIServer `json:"apiserver,omitempty"`
	}
	meshAPIServer struct {
		Service meshService `json:"service"`
		TLS     meshTLS     `json:"tls"`
	}
	meshService struct {
		Type        string            `json:"type"`
		Annotations map[string]string `json:"annotations"`
	}
	meshTLS struct {
		AuthMode string `json:"authMode"`
		Auto     toggle `json:"auto"`
	}
)

// agentCapabilities are what Talos lets a privileged-enough pod have: all that the chart asks for but SYS_MODULE, for
// Talos loads no kernel modules on a workload's behalf.
var agentCapabilities = []string{
	"CHOWN", "KILL", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "SYS_ADMIN", "SYS_RESOURCE", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID",
}

var cleanStateCapabilities = []string{"NET_ADMIN", "SYS_ADMIN", "SYS_RESOURCE"}

// envoyCaps are the chart's own. NET_BIND_SERVICE is not among them: gateways listen on load-balancer addresses, which
// BPF brings to Envoy's high ports. Only listeners on the host's own ports below 1024 would need it.
var envoyCaps = []string{"NET_ADMIN", "SYS_ADMIN"}

// chart turns the choices into chart values.
func (v Values) chart() chartValues {
	values := chartValues{
		Cluster:              identity{Name: v.Identity.Name, ID: v.Identity.ID},
		KubeProxyReplacement: true,
		// KubePrism: the agents need the API server before they can route to the VIP or to any Service.
		K8sServiceHost: "localhost",
		K8sServicePort: cluster.KubePrismPort,
		// Kubernetes assigns each node its part of the pod CIDRs that Talos declared; Cilium has no pool of its own to disagree with.
		IPAM: ipam{Mode: "kubernetes"},
		IPv4: toggle{true},
		IPv6: toggle{v.Network.IPv6 != nil},
		// Stated in a tunnel, too, where only masquerading reads it: it must never be another one than Talos's.
		IPv4NativeRoutingCIDR: v.Network.PodCIDR.String(),
		EnableIPv4Masquerade:  true,
		EnableIPv6Masquerade:  v.Network.IPv6 != nil,
		BPF:                   bpf{Masquerade: v.Cilium.Masquerade == cluster.MasqueradeBPF},
		// Services are translated when a pod connects, in the pods' own namespaces as well: a packet then needs no
		// translation at all. Limiting that to the host's namespace is for proxies that must see a Service's address inside
		// a pod, and the other way out of the trouble between host DNS and BPF masquerading; forwarding is off instead.
		SocketLB: socketLB{HostNamespaceOnly: false},
		// Talos has mounted cgroup2 already, and denies a second mount.
		Cgroup: cgroup{AutoMount: toggle{false}, HostRoot: "/sys/fs/cgroup"},
		SecurityContext: securityContext{Capabilities: capabilities{
			CiliumAgent:      slices.Clone(agentCapabilities),
			CleanCiliumState: slices.Clone(cleanStateCapabilities),
		}},
		// Agents, operator, Envoy and relay read their configuration when they start. Without a roll-out, a changed option
		// would look applied and not be.
		RollOutCiliumPods: true,
		// Two from the start, never on one node: with one node the second stays Pending, and starts by itself when
		// another joins. The affinity is the chart's default; it is stated because the declared behaviour hangs on it. For
		// the same reason all of them may go at once in an update: with one node, a new one would wait for the place of the
		// old for ever. Nothing of the datapath hangs on a moment without operator.
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
		// A DaemonSet of its own, so that a restart of the agent does not cut the connections that pass through Envoy.
		Envoy: envoy{Enabled: true, RollOutPods: true, SecurityContext: envoySecurityContext{
			Capabilities: envoyCapabilities{Envoy: slices.Clone(envoyCaps), KeepCapNetBindService: false},
		}},
		Hubble: hubble{
			Enabled: v.Cilium.Hubble.Enabled, TLS: hubbleTLS{Auto: toggle{false}},
			Relay: hubbleRelay{Enabled: v.relay(), RollOutPods: true}, UI: toggle{v.Cilium.Hubble.UI},
		},
		BGPControlPlane: toggle{v.Cilium.BGP},
		L2Announcements: toggle{v.Cilium.L2Announcements},
		ClusterMesh:     v.clusterMesh(),
	}
	v.route(&values)
	v.serveGateways(&values)
	v.shape(&values)
	return values
}

// route sets how packets travel between nodes.
func (v Values) route(values *chartValues) {
	values.RoutingMode = "tunnel"
	if v.Cilium.Routing == cluster.RoutingNative {
		// The nodes are neighbours on one network: each tells its kernel the way to the others' pods, and nothing else has
		// to know it.
		values.RoutingMode, values.AutoDirectNodeRoutes = "native", true
	}
	if six := v.Network.IPv6; six != nil {
		values.IPv6NativeRoutingCIDR = six.PodCIDR.String()
	}
	if v.Cilium.Encryption == cluster.EncryptionWireGuard {
		// Between pods only. Nodes have their own protection for what they say to each other (TLS throughout), and an agent
		// that cannot get its keys must not cut its node off from the API server.
		values.Encryption = encryption{Enabled: true, Type: "wireguard"}
	}
}

// serveGateways sets what the Gateway API takes.
func (v Values) serveGateways(values *chartValues) {
	if !v.Cilium.GatewayAPI {
		return
	}
	values.GatewayAPI = gatewayAPI{
		Enabled: true,
		// HTTP/2 and so gRPC to clients by ALPN, to backends by the appProtocol of their Service: without them gateways
		// speak HTTP/1.1 whatever routes say.
		EnableALPN: true, EnableAppProtocol: true,
		// Always, instead of when the chart's renderer happens to know the CRDs: what is installed must not hang on that.
		GatewayClass: &gatewayClass{Create: "true"},
	}
}

// shape sets what limits or speeds traffic, the agents' own to the API server included.
func (v Values) shape(values *chartValues) {
	switch v.Cilium.BandwidthManager {
	case cluster.BandwidthEDT:
		values.BandwidthManager = bandwidth{Enabled: true}
	case cluster.BandwidthBBR:
		values.BandwidthManager = bandwidth{Enabled: true, BBR: true}
	}
	if v.Cilium.L2Announcements {
		// A node renews the lease of each Service that it answers for every 5 s. At worst one node has them all: a pool of
		// 100 addresses takes 20 requests a second, twice the agents' default limit; when they come late, addresses move.
		values.K8sClientRateLimit = &rateLimit{QPS: 50, Burst: 100}
	}
}

// clusterMesh is the API server for peers. Its certificates must come from the CA that they share, so it starts with
// the mesh.
func (v Values) clusterMesh() clusterMesh {
	if !v.Mesh {
		return clusterMesh{}
	}
	return clusterMesh{UseAPIServer: true, APIServer: &meshAPIServer{
		// By LB-IPAM's annotation: spec.loadBalancerIP is deprecated, and holds one address only.
		Service: meshService{Type: "LoadBalancer", Annotations: map[string]string{
			"lbipam.cilium.io/ips": v.Network.LoadBalancers.Mesh.String(),
		}},
		// Peers authenticate by a certificate of the shared CA for the one user "remote".
		TLS: meshTLS{AuthMode: "legacy", Auto: toggle{false}},
	}}
}
