package cluster

// Cilium is the CNI: its chart, and the features in use.
type Cilium struct {
	Owned

	// Version of the chart.
	//
	// renovate: datasource=helm depName=cilium registryUrl=https://helm.cilium.io/
	Version string `json:"version" form:"chart-version" default:"1.20.2"`
	// Chart repository.
	Repository string `json:"repository" form:"https-url" default:"https://helm.cilium.io/" example:"https://charts.example.com/cilium"`
	// How Cilium is installed: as a `helm` release, or as `inline` manifests in the control planes' machine configuration, which
	// Talos applies at the bootstrap and never changes; an engine that is the `owner` does. A running cluster keeps its mode until it is
	// switched manually.
	Mode CiliumMode `json:"mode" default:"helm" example:"inline"`
	// How pods' traffic is routed between nodes: through a `tunnel` (VXLAN), or `native`, which requires all machines on one
	// layer-2 network.
	Routing Routing `json:"routing" default:"tunnel" example:"native"`
	// What replaces the source address of pods' traffic that leaves the cluster with the node's address.
	Masquerade Masquerade `json:"masquerade" default:"iptables" example:"bpf"`
	// Enable the Gateway API in Cilium.
	GatewayAPI bool `json:"gatewayAPI" default:"true" example:"false"`
	// Hubble, Cilium's observability.
	Hubble Hubble `json:"hubble"`
	// Encryption of the traffic between nodes.
	Encryption Encryption `json:"encryption" default:"none" example:"wireguard"`
	// Pacing of pods' traffic: `edt` applies `kubernetes.io/egress-bandwidth`; `bbr` also makes BBR the pods' congestion control,
	// and requires `cilium.masquerade: bpf`.
	BandwidthManager BandwidthManager `json:"bandwidthManager" default:"none" example:"edt"`
	// Values of one's own for the chart, under its own keys. They are merged last, and must not set what Slipway sets. They must
	// contain no secrets. For the minor release that Slipway installs by default, keys that the chart does not know, and values that the chart
	// or the agent does not accept, are refused.
	Values ChartValues `json:"values" example:"{MTU: 1450}"`
}

// Hubble is Cilium's observability. Each part requires the part before it.
type Hubble struct {
	// Enable Hubble: every agent records flows.
	Enabled bool `json:"enabled" default:"true" example:"false"`
	// Hubble's cluster-wide API.
	Relay *bool `json:"relay" follows:"cilium.hubble.enabled" example:"false"`
	// Hubble's web interface. It needs the relay.
	UI bool `json:"ui" example:"true"`
}

// How Cilium's chart names its agents.
const (
	CiliumAgentSelector  = "k8s-app=cilium" // labels of the DaemonSet and its pods
	CiliumAgentContainer = "cilium-agent"   // of each pod
)

// CiliumMode is how Cilium is installed.
type CiliumMode string

// The modes of Cilium.
const (
	CiliumHelm   CiliumMode = "helm"
	CiliumInline CiliumMode = "inline"
)

// Routing is how packets are routed between nodes.
type Routing string

// The kinds of routing.
const (
	RoutingTunnel Routing = "tunnel"
	RoutingNative Routing = "native"
)

// Masquerade is what replaces the source address of traffic that leaves the cluster with the node's address.
type Masquerade string

// The kinds of masquerading. With BPF it is faster, and packets bypass the host's network stack, but cluster DNS cannot forward to
// the host's DNS.
const (
	MasqueradeIPTables Masquerade = "iptables"
	MasqueradeBPF      Masquerade = "bpf"
)

// Encryption is transparent encryption between nodes.
type Encryption string

// The kinds of encryption.
const (
	EncryptionNone      Encryption = "none"
	EncryptionWireGuard Encryption = "wireguard"
)

// BandwidthManager is Cilium's pacing of pods' traffic.
type BandwidthManager string

// The kinds of bandwidth management: earliest departure time (edt), or that and BBR as the pods' congestion control.
const (
	BandwidthNone BandwidthManager = "none"
	BandwidthEDT  BandwidthManager = "edt"
	BandwidthBBR  BandwidthManager = "bbr"
)

// Choices lists the modes of Cilium.
func (CiliumMode) Choices() []string { return texts(CiliumHelm, CiliumInline) }

// Choices lists the kinds of routing.
func (Routing) Choices() []string { return texts(RoutingTunnel, RoutingNative) }

// Choices lists the kinds of masquerading.
func (Masquerade) Choices() []string { return texts(MasqueradeIPTables, MasqueradeBPF) }

// Choices lists the kinds of encryption.
func (Encryption) Choices() []string { return texts(EncryptionNone, EncryptionWireGuard) }

// Choices lists the kinds of bandwidth management.
func (BandwidthManager) Choices() []string { return texts(BandwidthNone, BandwidthEDT, BandwidthBBR) }

// Inline reports whether Cilium's manifests are part of the machine configuration, instead of a Helm release.
func (c Cilium) Inline() bool { return c.Mode == CiliumInline }

// HasRelay reports whether Hubble's cluster-wide API runs.
func (h Hubble) HasRelay() bool { return h.Relay != nil && *h.Relay }

// Service returns Cilium's release. What Slipway sets in the chart is computed elsewhere.
func (c Cilium) Service() Service {
	return Service{
		Key: "cilium", Name: "cilium", Namespace: "kube-system", Chart: "cilium",
		Version: c.Version, Repository: c.Repository, UserValues: c.Values, Owner: c.Owner,
	}
}

// Needed returns the values of the chart that the gate and the nodes rely on.
func (c Cilium) Needed(mesh Mesh) []Needed {
	const (
		noPods    = "leaves the nodes without Cilium, which the gate waits for"
		noAccount = "leaves its pods without the account that they run with: nothing else makes it before Cilium"
		noProbes  = "ends the probes between nodes, which the gate reads"
	)
	needed := []Needed{
		{"agent", true, noPods}, {"operator.enabled", true, noPods}, {"cni.install", true, noPods}, {"namespaceOverride", "", elsewhere},
		{"serviceAccounts.cilium.create", true, noAccount}, {"serviceAccounts.operator.create", true, noAccount},
		{"serviceAccounts.envoy.create", true, noAccount}, {"rbac.create", true, "leaves its accounts without rights"},
		{"healthChecking", true, noProbes}, {"endpointHealthChecking.enabled", true, noProbes},
	}
	if c.Hubble.HasRelay() {
		needed = append(needed, Needed{"hubble.relay.replicas", 1, "leaves no pod of the relay, which cilium.hubble.relay declares"})
	}
	if mesh.IsMember() {
		needed = append(needed, Needed{"clustermesh.apiserver.replicas", 1, "leaves no server for the peers of the mesh"})
	}
	return needed
}

func (c *Cilium) derive() {
	fill(&c.Hubble.Relay, new(c.Hubble.Enabled))
}

// cilium checks the choices against each other. The chart's own schema checks the values when the chart is rendered.
func (c clusterCheck) cilium() {
	switch hubble := c.Cilium.Hubble; {
	case hubble.HasRelay() && !hubble.Enabled:
		c.Found("cilium.hubble.relay", "remove it, or set cilium.hubble.enabled: true", "true needs Hubble, which is off")
	case hubble.UI && !hubble.Enabled:
		c.Found("cilium.hubble.ui", "remove it, or set cilium.hubble.enabled: true", "true needs Hubble, which is off")
	case hubble.UI && !hubble.HasRelay():
		c.Found("cilium.hubble.ui", "remove it, or set cilium.hubble.relay: true", "true needs the relay, which is off")
	}
	// BBR requires that packets bypass the host's network stack. Masquerading with iptables uses that stack, so the agent exits with
	// an error.
	if c.Cilium.BandwidthManager == BandwidthBBR && c.Cilium.Masquerade == MasqueradeIPTables {
		c.Found("cilium.bandwidthManager", "set cilium.masquerade: bpf, or write edt",
			"%s needs routing in BPF, which Cilium has only with masquerading in BPF", c.Cilium.BandwidthManager)
	}
	if c.Cilium.Routing == RoutingNative {
		c.oneNetwork()
	}
	if c.Cilium.GatewayAPI && c.CRDs.GatewayAPI.Skip {
		c.Found("crds.gatewayAPI.skip", "remove it, or set cilium.gatewayAPI: false",
			"true leaves out what cilium.gatewayAPI needs before Cilium starts")
	}
}

// oneNetwork checks that all machines are on one network. With native routing, each machine sends pods' packets directly to the
// address of the other machine.
func (c clusterCheck) oneNetwork() {
	first, pools := -1, c.NodePools
	for i, pool := range pools {
		switch {
		case pool.VLAN == nil:
		case first < 0:
			first = i
		case *pool.VLAN != *pools[first].VLAN:
			c.Found("cilium.routing", "give all pools the same VLAN, or write tunnel",
				"%s needs all machines on one network, and nodePools[%d] is in VLAN %d, nodePools[%d] in %d",
				c.Cilium.Routing, first, *pools[first].VLAN, i, *pool.VLAN)
			return
		}
	}
}
