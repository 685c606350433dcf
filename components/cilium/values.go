package cilium

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
)

// ChartVersion is the Cilium chart that Slipway is tested with.
//
// renovate: datasource=helm depName=cilium registryUrl=https://helm.cilium.io/
const ChartVersion = "1.18.7"

// Values are the choices that make the Cilium of one cluster. It holds no certificates: they are known later.
type Values struct {
	ClusterName   string       // Cilium's name of the cluster, unique in a mesh; lower-case label of at most 32 characters; required
	ClusterID     int          // 1 to 255, unique in a mesh; required
	PodCIDR       netip.Prefix // IPv4, the value that Talos was given; required
	KubePrismPort int          // port of KubePrism on every node's loopback, the value that Talos was given; required
}

// chart mirrors the part of the chart's values that Slipway sets, in the chart's own words.
type chart struct {
	Cluster               cluster         `json:"cluster"`
	KubeProxyReplacement  bool            `json:"kubeProxyReplacement"`
	K8sServiceHost        string          `json:"k8sServiceHost"`
	K8sServicePort        int             `json:"k8sServicePort"`
	IPAM                  ipam            `json:"ipam"`
	RoutingMode           string          `json:"routingMode"`
	IPv4NativeRoutingCIDR string          `json:"ipv4NativeRoutingCIDR"`
	BPF                   bpf             `json:"bpf"`
	Cgroup                cgroup          `json:"cgroup"`
	SecurityContext       securityContext `json:"securityContext"`
	Operator              operator        `json:"operator"`
	Hubble                hubble          `json:"hubble"`
	GatewayAPI            toggle          `json:"gatewayAPI"`
	ClusterMesh           clusterMesh     `json:"clustermesh"`
}

type (
	toggle struct {
		Enabled bool `json:"enabled"`
	}
	cluster struct {
		Name string `json:"name"`
		ID   int    `json:"id"`
	}
	ipam struct {
		Mode string `json:"mode"`
	}
	bpf struct {
		Masquerade bool `json:"masquerade"`
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
		Replicas int      `json:"replicas"`
		Affinity affinity `json:"affinity"`
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
	hubble struct {
		Enabled bool      `json:"enabled"`
		TLS     hubbleTLS `json:"tls"`
		Relay   toggle    `json:"relay"`
		UI      toggle    `json:"ui"`
	}
	hubbleTLS struct {
		Auto toggle `json:"auto"`
	}
	clusterMesh struct {
		UseAPIServer bool `json:"useAPIServer"`
	}
)

// agentCapabilities are what Talos lets a privileged-enough pod have: all that the chart asks for but SYS_MODULE, for
// Talos loads no kernel modules on a workload's behalf.
var agentCapabilities = []string{
	"CHOWN", "KILL", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "SYS_ADMIN", "SYS_RESOURCE", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID",
}

var cleanStateCapabilities = []string{"NET_ADMIN", "SYS_ADMIN", "SYS_RESOURCE"}

// chart turns the choices into chart values.
func (v Values) chart() chart {
	return chart{
		Cluster:              cluster{Name: v.ClusterName, ID: v.ClusterID},
		KubeProxyReplacement: true,
		// KubePrism: the agents need the API server before they can route to the VIP or to any Service.
		K8sServiceHost: "localhost",
		K8sServicePort: v.KubePrismPort,
		// Kubernetes assigns each node its part of the pod CIDR that Talos declared; Cilium has no pool of its own to disagree with.
		IPAM: ipam{Mode: "kubernetes"},
		// Tunnelled, for the nodes' network need not know the pods'. The CIDR is stated all the same: it becomes the
		// border of masquerading as soon as somebody routes natively, and must never be another one than Talos's.
		RoutingMode:           "tunnel",
		IPv4NativeRoutingCIDR: v.PodCIDR.String(),
		// iptables masquerading: with the BPF one, Talos's host DNS forwarding would break cluster DNS. Forwarding is off
		// too, so that either can be turned on later, but not both at once.
		BPF: bpf{Masquerade: false},
		// Talos has mounted cgroup2 already, and denies a second mount.
		Cgroup: cgroup{AutoMount: toggle{false}, HostRoot: "/sys/fs/cgroup"},
		SecurityContext: securityContext{Capabilities: capabilities{
			CiliumAgent:      slices.Clone(agentCapabilities),
			CleanCiliumState: slices.Clone(cleanStateCapabilities),
		}},
		// Two from the start, never on one node: with one node the second stays Pending, and starts by itself when
		// another joins. The affinity is the chart's default; it is stated because the declared behaviour hangs on it.
		Operator: operator{Replicas: 2, Affinity: affinity{PodAntiAffinity: podAntiAffinity{Required: []affinityTerm{{
			TopologyKey:   "kubernetes.io/hostname",
			LabelSelector: labelSelector{MatchLabels: map[string]string{"io.cilium/app": "operator"}},
		}}}}},
		// Relay, to see flows while anything is wrong; the UI is for Git to add, together with the route to it.
		Hubble: hubble{Enabled: true, TLS: hubbleTLS{Auto: toggle{false}}, Relay: toggle{true}, UI: toggle{false}},
		// The chart fails without the Gateway API's CRDs, which no cluster has this early.
		GatewayAPI: toggle{false},
		// A mesh API server is for peers. Its certificates must come from the CA they share, so it starts with the mesh.
		ClusterMesh: clusterMesh{UseAPIServer: false},
	}
}

var clusterNameForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`)

// validate returns everything that the chart or Cilium would reject or, worse, take.
func (v Values) validate() error {
	var problems []error
	if !clusterNameForm.MatchString(v.ClusterName) || v.ClusterName == "default" {
		problems = append(problems, fmt.Errorf("clusterName: %q is not a name Cilium takes; give a lower-case label of at most 32 characters other than default",
			v.ClusterName))
	}
	if v.ClusterID < 1 || v.ClusterID > 255 {
		problems = append(problems, fmt.Errorf("clusterID: %d is not in 1 to 255; give each cluster its own", v.ClusterID))
	}
	if !v.PodCIDR.IsValid() || !v.PodCIDR.Addr().Is4() || v.PodCIDR != v.PodCIDR.Masked() {
		problems = append(problems, fmt.Errorf("podCIDR: %s is not an IPv4 network; give the one that Talos got", v.PodCIDR))
	}
	if v.KubePrismPort < 1 || v.KubePrismPort > 65535 {
		problems = append(problems, fmt.Errorf("kubePrismPort: %d is not a port; give the one that Talos got", v.KubePrismPort))
	}
	return errors.Join(problems...)
}
