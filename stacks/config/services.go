package config

// CRDs are the CustomResourceDefinitions that stand in the cluster before any chart does; each set from one manifest.
type CRDs struct {
	GatewayAPI         CRDSource `json:"gatewayAPI"`         // Gateway API, the standard channel; optional
	CertManager        CRDSource `json:"certManager"`        // cert-manager; optional
	ExternalSecrets    CRDSource `json:"externalSecrets"`    // External Secrets Operator; optional
	VictoriaMetrics    CRDSource `json:"victoriaMetrics"`    // VictoriaMetrics operator; optional
	PrometheusOperator CRDSource `json:"prometheusOperator"` // Prometheus operator; optional
	CloudNativePG      CRDSource `json:"cloudnativePG"`      // CloudNativePG; optional
}

// CRDSource is where a set of CustomResourceDefinitions comes from.
type CRDSource struct {
	Version string `json:"version"` // release, as the project tags it, such as v1.3.0; default: pinned, and for certManager that of certManager.version
	URL     string `json:"url"`     // https URL of the manifest; default: the project's official one of Version
	SHA256  string `json:"sha256"`  // checksum of the manifest, 64 hexadecimal digits; default: not checked
	Skip    bool   `json:"skip"`    // leave the set out; default false
}

// Cilium is the network core: its chart, and what of it is in use.
type Cilium struct {
	Version    string `json:"version"`    // chart version, such as 1.18.7; default: pinned
	Repository string `json:"repository"` // https URL of the chart repository; default https://helm.cilium.io/

	Mode             CiliumMode       `json:"mode"`             // helm: a Helm release; inline: manifests in the control planes' machine configuration, which Talos applies once; default helm
	Routing          Routing          `json:"routing"`          // tunnel (VXLAN) or native (the machines share a wire); default tunnel
	Masquerade       Masquerade       `json:"masquerade"`       // of pods' traffic that leaves the cluster: iptables or bpf; default iptables
	GatewayAPI       Switch           `json:"gatewayAPI"`       // Cilium serves Gateway API; default true
	Hubble           Hubble           `json:"hubble"`           // optional
	BGP              bool             `json:"bgp"`              // BGP control plane; its peers are declared in Git; default false
	L2Announcements  bool             `json:"l2Announcements"`  // answer ARP and NDP for load-balancer addresses; what is announced is declared in Git; default false
	Encryption       Encryption       `json:"encryption"`       // of traffic between nodes: none or wireguard; default none
	BandwidthManager BandwidthManager `json:"bandwidthManager"` // none, edt, or bbr, which needs masquerade: bpf; default none
}

// Hubble is Cilium's observability.
type Hubble struct {
	Enabled Switch `json:"enabled"` // default true
	Relay   Switch `json:"relay"`   // the cluster-wide API; default: as Enabled
	UI      bool   `json:"ui"`      // the web interface, which needs Relay; default false
}

// CoreDNS is the cluster's DNS, at the tenth address of the service network.
type CoreDNS struct {
	Version    string `json:"version"`    // chart version; default: pinned
	Repository string `json:"repository"` // https URL of the chart repository; default https://coredns.github.io/helm
	Replicas   int    `json:"replicas"`   // 1 to 10; default 2
}

// Spegel is the registry mirror that the nodes are to each other.
type Spegel struct {
	Enabled Switch `json:"enabled"` // default true
	Version string `json:"version"` // chart version; default: pinned
	Chart   string `json:"chart"`   // OCI reference without a tag; default oci://ghcr.io/spegel-org/helm-charts/spegel
}

// CertManager issues certificates.
type CertManager struct {
	Enabled    Switch `json:"enabled"`    // default true
	Version    string `json:"version"`    // chart version, with a v; default: pinned
	Repository string `json:"repository"` // https URL of the chart repository; default https://charts.jetstack.io
}
