package cilium

import "net/netip"

// ChartVersion is the Cilium chart that Slipway is tested with.
//
// renovate: datasource=helm depName=cilium registryUrl=https://helm.cilium.io/
const ChartVersion = "1.18.7"

// Values are the choices that make the Cilium of one cluster. It holds no certificates: they are known later.
type Values struct {
	ClusterName   string       // Cilium's name of the cluster, unique in a mesh; lower-case label of at most 32 characters; required
	ClusterID     int          // 1 to 255, unique in a mesh; required
	PodCIDR       netip.Prefix // IPv4, the value that Talos was given; required
	PodCIDR6      netip.Prefix // IPv6, the value that Talos was given; zero means a cluster with IPv4 only
	KubePrismPort int          // port of KubePrism on every node's loopback, the value that Talos was given; required

	Routing    Routing    // how pods of different nodes reach each other; "" means RoutingTunnel
	Masquerade Masquerade // what rewrites the source of traffic that leaves the cluster; "" means MasqueradeIPTables

	// HostDNSForwarding is whether Talos has cluster DNS forward to the host's own DNS
	// (machine.features.hostDNS.forwardKubeDNSToHost), the value that Talos was given. It rules out MasqueradeBPF.
	HostDNSForwarding bool

	GatewayAPI      bool       // gateways of the Gateway API, served by Envoy; its CRDs must be there before
	Hubble          *Hubble    // what shows flows; nil means on, with relay and without UI
	BGP             bool       // the BGP control plane, for CiliumBGP* objects to use
	L2Announcements bool       // answering ARP for load-balancer addresses, for CiliumL2AnnouncementPolicy objects to use
	Encryption      Encryption // of traffic between pods of different nodes; "" means EncryptionNone
	Bandwidth       Bandwidth  // who shapes the pods' traffic; "" means BandwidthNone

	Mesh          bool          // run the API server that peers of a cluster mesh read from
	LoadBalancers LoadBalancers // where the addresses of Services come from; required with Mesh
}

// Routing is how packets get from node to node.
type Routing string

// The ways of routing. In a tunnel (VXLAN) the nodes' network need not know the pods'. Natively, each node has routes to
// the others' pods: less overhead, but all nodes must be neighbours on one network.
const (
	RoutingTunnel Routing = "tunnel"
	RoutingNative Routing = "native"
)

// Masquerade is what gives traffic that leaves the cluster its node's address.
type Masquerade string

// The ways of masquerading. The BPF one is faster and lets packets skip the host's stack, and takes cluster DNS that
// does not forward to the host's.
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

// Bandwidth is what Cilium's bandwidth manager does.
type Bandwidth string

// The kinds of bandwidth management: none; earliest departure time, which honours kubernetes.io/egress-bandwidth; and
// that together with BBR, which needs MasqueradeBPF.
const (
	BandwidthNone Bandwidth = "none"
	BandwidthEDT  Bandwidth = "edt"
	BandwidthBBR  Bandwidth = "bbr"
)

// Hubble is which parts of Hubble run: each needs the one before it.
type Hubble struct {
	Enabled bool // flows are recorded in each agent
	Relay   bool // one place to ask for the flows of all nodes
	UI      bool // a web page over the relay
}

// LoadBalancers is the range that addresses of Services come from, and the one of it that the mesh API server has.
type LoadBalancers struct {
	Start, Stop netip.Addr // both inclusive
	Mesh        netip.Addr // of the mesh API server, in the range
}

// hubble is the choice, or the default: relay, to see flows while anything is wrong, but no UI, for the route to it is
// Git's to add.
func (v Values) hubble() Hubble {
	if v.Hubble == nil {
		return Hubble{Enabled: true, Relay: true}
	}
	return *v.Hubble
}

// dualStack is whether pods have an IPv6 address, too.
func (v Values) dualStack() bool { return v.PodCIDR6.IsValid() }
