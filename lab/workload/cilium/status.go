package cilium

import (
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
)

// nic is the network card of every machine in the lab.
const nic = "eth0"

// status is the agent's report: the state that the configuration asks for, on a node that supports all of it.
func (a *agent) status() agentStatus {
	cfg, nodes := a.settings(), a.nodeElements()
	ok := func() *componentStatus { return &componentStatus{State: "Ok"} }
	s := agentStatus{
		AttachMode: "tcx", DatapathMode: "veth",
		Cilium:           &componentStatus{State: "Ok", Msg: fmt.Sprintf("%s (v%s-lab)", version(a.Container), version(a.Container))},
		Cluster:          &clusterStatus{Self: fullName(cfg.cluster(), a.Node), CiliumHealth: ok(), Nodes: nodes},
		CNIChaining:      &modeStatus{Mode: cfg.get("cni-chaining-mode", "none")},
		CNIFile:          &componentStatus{State: "Ok", Msg: "successfully wrote CNI configuration file to /host/etc/cni/net.d/05-cilium.conflist"},
		ContainerRuntime: &componentStatus{State: "Disabled"},
		Controllers: []controllerStatus{{Name: "cilium-health-ep", Status: controllerState{SuccessCount: 1}},
			{Name: "sync-to-k8s-ciliumendpoint", Status: controllerState{SuccessCount: 1}}},
		HostFirewall: &hostFirewall{Mode: "Disabled", Devices: []string{}},
		Hubble:       &componentStatus{State: "Disabled"},
		Kubernetes: &kubernetesStatus{State: "Ok", Msg: strings.TrimPrefix(a.KubernetesVersion, "v") + " (v" +
			strings.TrimPrefix(a.KubernetesVersion, "v") + ") [linux/amd64]",
			APIVersions: []string{"EndpointSliceOrEndpoint", "cilium/v2::CiliumClusterwideNetworkPolicy", "cilium/v2::CiliumEndpoint",
				"cilium/v2::CiliumNetworkPolicy",
				"cilium/v2::CiliumNode", "core/v1::Namespace", "core/v1::Pods", "core/v1::Service", "networking.k8s.io/v1::NetworkPolicy"}},
		Kvstore:     &componentStatus{State: "Disabled"},
		NodeMonitor: &nodeMonitor{CPUs: 4, NPages: 64, PageSize: 4096},
		Routing:     &routing{InterHostRoutingMode: "Tunnel", IntraHostRoutingMode: "Legacy", TunnelProtocol: cfg.tunnel()},
	}
	if s.Routing.TunnelProtocol == "" {
		s.Routing.InterHostRoutingMode = "Native"
	}
	if cfg.on("enable-hubble", false) {
		s.Hubble = ok()
	}
	s.IdentityRange = identities(cfg)
	s.KubeProxyReplacement = &kubeProxyReplacement{Mode: "False", DeviceList: []device{}, Devices: []string{}}
	n := a.self()
	if cfg.on("kube-proxy-replacement", false) && n != nil {
		ips := internalIPs(n)
		s.KubeProxyReplacement = &kubeProxyReplacement{Mode: "True", Devices: []string{nic}, DeviceList: []device{{Name: nic, IP: ips}},
			DirectRoutingDevice: nic}
	}
	a.features(&s, cfg, len(nodes))
	a.mesh.report(&s)
	if !olderThan120(version(a.Container)) { // which reports neither
		s.ContainerRuntime = nil
		if s.ClusterMesh != nil {
			s.ClusterMesh.NumGlobalServices = 0
		}
	}
	if n != nil {
		a.addresses(&s, n)
	}
	return s
}

// features sets the parts that options of the chart switch on.
func (a *agent) features(s *agentStatus, cfg ciliumConfig, nodes int) {
	s.Encryption = &encryptionStatus{Mode: "Disabled"}
	if cfg.on("enable-wireguard", false) {
		s.Encryption = &encryptionStatus{Mode: "Wireguard", Wireguard: &wireguardStatus{NodeEncryption: "Disabled",
			Interfaces: []wireguardInterface{{Name: "cilium_wg0", ListenPort: 51871, PeerCount: int64(nodes - 1)}}}}
	}
	s.BandwidthManager = &bandwidthManager{Devices: []string{}}
	if cfg.on("enable-bandwidth-manager", false) {
		s.BandwidthManager = &bandwidthManager{Enabled: true, Devices: []string{nic}, CongestionControl: "cubic"}
		if cfg.on("enable-bbr", false) {
			s.BandwidthManager.CongestionControl = "bbr"
		}
	}
	four := cfg.on("enable-ipv4-masquerade", true) && cfg.on("enable-ipv4", true)
	six := cfg.on("enable-ipv6-masquerade", true) && cfg.on("enable-ipv6", false)
	s.Masquerading = &masquerading{Enabled: four || six, EnabledProtocols: &ipProtocols{IPv4: four, IPv6: six}, Mode: "iptables",
		SnatExclusionCIDRv4: cfg["ipv4-native-routing-cidr"], SnatExclusionCIDRv6: cfg["ipv6-native-routing-cidr"]}
	if cfg.on("enable-bpf-masquerade", false) {
		s.Masquerading.Mode, s.Routing.IntraHostRoutingMode = "BPF", "BPF"
	}
	mode := "embedded"
	if cfg.on("external-envoy-proxy", false) {
		mode = "external"
	}
	s.Proxy = &proxyStatus{EnvoyDeploymentMode: mode, PortRange: "10000-20000", Redirects: []any{}}
}

// addresses sets the node's ranges and the addresses that are in use.
func (a *agent) addresses(s *agentStatus, n *corev1.Node) {
	ranges := PodCIDRs(n, a.Cluster.Faults)
	s.IPAM = &ipamStatus{Allocations: map[string]string{}, IPv4: []string{}, IPv6: []string{}}
	if a.Cluster.PodAddresses != nil {
		maps.Copy(s.IPAM.Allocations, a.Cluster.PodAddresses(a.Node))
	}
	for i, ip := range healthIPs(ranges) {
		s.IPAM.Allocations[ip], s.IPAM.Allocations[routerIP(ranges[i])] = "health", "router"
	}
	if len(ranges) > 0 {
		s.Proxy.IP = routerIP(ranges[0])
	}
	var parts []string
	for _, r := range ranges {
		p, err := netip.ParsePrefix(r)
		if err != nil {
			continue
		}
		var used []string
		for ip := range s.IPAM.Allocations {
			if address, err := netip.ParseAddr(ip); err == nil && p.Contains(address) {
				used = append(used, ip)
			}
		}
		slices.Sort(used)
		if p.Addr().Is4() {
			s.IPAM.IPv4 = append(s.IPAM.IPv4, used...)
			parts = append(parts, fmt.Sprintf("IPv4: %d/%d allocated from %s", len(used), 1<<(32-p.Bits())-2, p))
		} else {
			s.IPAM.IPv6 = append(s.IPAM.IPv6, used...)
			parts = append(parts, fmt.Sprintf("IPv6: %d/%d allocated from %s", len(used), uint64(1)<<min(63, 128-p.Bits())-2, p))
		}
	}
	s.IPAM.Status = strings.Join(parts, ", ")
}

// identities is the range of a cluster's security identities. Each cluster of a mesh has its own range.
func identities(cfg ciliumConfig) *identityRange {
	id := int64(0)
	_, _ = fmt.Sscan(cfg.get("cluster-id", "0"), &id)
	return &identityRange{MinIdentity: id<<16 + 256, MaxIdentity: id<<16 + 65535}
}

// nodeElements are the nodes that the agent knows, those of its peers included, itself first.
func (a *agent) nodeElements() []nodeElement {
	cluster := a.settings().cluster()
	var out []nodeElement
	for _, n := range a.Cluster.Nodes() {
		if !a.shared.known(n.Name) {
			continue
		}
		e := nodeElement{Name: fullName(cluster, n.Name), PrimaryAddress: &nodeAddressing{}, HealthEndpointAddress: &nodeAddressing{},
			IngressAddress: &nodeAddressing{}, SecondaryAddresses: []addressingElement{}, Source: "custom-resource"}
		if n.Name == a.Node {
			e.Source = "local"
		}
		ranges := PodCIDRs(n, a.Cluster.Faults)
		for i, ip := range healthIPs(ranges) {
			e.HealthEndpointAddress.set(addressingElement{Enabled: true, IP: ip})
			e.SecondaryAddresses = append(e.SecondaryAddresses, addressingElement{AddressType: "CiliumInternalIP", IP: routerIP(ranges[i])})
			for _, host := range internalIPs(n) {
				if family(host) == family(ip) {
					e.PrimaryAddress.set(addressingElement{AddressType: "InternalIP", AllocRange: ranges[i], Enabled: true, IP: host})
				}
			}
		}
		out = append(out, e)
	}
	for _, n := range a.remoteNodes() {
		out = append(out, n.element())
	}
	slices.SortFunc(out, func(x, y nodeElement) int {
		if (x.Source == "local") != (y.Source == "local") {
			return map[bool]int{true: -1, false: 1}[x.Source == "local"]
		}
		return strings.Compare(x.Name, y.Name)
	})
	return out
}

func (n *nodeAddressing) set(e addressingElement) {
	if family(e.IP) == "ipv6" {
		n.IPv6 = &e
		return
	}
	n.IPv4 = &e
}

func (a *agent) nodesText(w io.Writer, _ statusFlags) (int, error) {
	t := tabwriter.NewWriter(w, 2, 0, 3, ' ', 0)
	fmt.Fprintf(t, "Name\tIPv4 Address\tEndpoint CIDR\tIPv6 Address\tEndpoint CIDR\tSource\n")
	for _, n := range a.nodeElements() {
		cell := func(e *addressingElement) string {
			if e == nil {
				return "\t"
			}
			return e.IP + "\t" + e.AllocRange
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", n.Name, cell(n.PrimaryAddress.IPv4), cell(n.PrimaryAddress.IPv6), n.Source)
	}
	return 0, t.Flush()
}

// statusText prints the report as `cilium-dbg status` does. The exit code is 1 if something in it is not healthy.
func (a *agent) statusText(w io.Writer, f statusFlags) (int, error) {
	s := a.status()
	if f.short {
		_, err := fmt.Fprintln(w, "OK")
		return 0, err
	}
	t := tabwriter.NewWriter(w, 2, 0, 3, ' ', 0)
	fmt.Fprintf(t, "KVStore:\t%s\t%s\n", s.Kvstore.State, s.Kvstore.Msg)
	fmt.Fprintf(t, "Kubernetes:\t%s\t%s\n", s.Kubernetes.State, s.Kubernetes.Msg)
	fmt.Fprintf(t, "Kubernetes APIs:\t[\"%s\"]\n", strings.Join(s.Kubernetes.APIVersions, "\", \""))
	devices := ""
	for _, d := range s.KubeProxyReplacement.DeviceList {
		devices = fmt.Sprintf("[%s %s (Direct Routing)]", d.Name, strings.Join(d.IP, " "))
	}
	fmt.Fprintf(t, "KubeProxyReplacement:\t%s\t%s\n", s.KubeProxyReplacement.Mode, devices)
	fmt.Fprintf(t, "Host firewall:\t%s\n", s.HostFirewall.Mode)
	fmt.Fprintf(t, "CNI Chaining:\t%s\n", s.CNIChaining.Mode)
	fmt.Fprintf(t, "CNI Config file:\t%s\n", s.CNIFile.Msg)
	fmt.Fprintf(t, "Cilium:\t%s   %s\n", s.Cilium.State, s.Cilium.Msg)
	fmt.Fprintf(t, "NodeMonitor:\tListening for events on %d CPUs with %dx%d of shared memory\n", s.NodeMonitor.CPUs, s.NodeMonitor.NPages,
		s.NodeMonitor.PageSize)
	fmt.Fprintf(t, "Cilium health daemon:\t%s\t%s\n", s.Cluster.CiliumHealth.State, s.Cluster.CiliumHealth.Msg)
	if s.IPAM != nil {
		fmt.Fprintf(t, "IPAM:\t%s\n", s.IPAM.Status)
	}
	bandwidth := "Disabled"
	if s.BandwidthManager.Enabled {
		bandwidth = fmt.Sprintf("EDT with BPF [%s] [%s]", strings.ToUpper(s.BandwidthManager.CongestionControl),
			strings.Join(s.BandwidthManager.Devices, ", "))
	}
	fmt.Fprintf(t, "BandwidthManager:\t%s\n", bandwidth)
	network := s.Routing.InterHostRoutingMode
	if s.Routing.TunnelProtocol != "" {
		network += " [" + s.Routing.TunnelProtocol + "]"
	}
	fmt.Fprintf(t, "Routing:\tNetwork: %s\tHost: %s\n", network, s.Routing.IntraHostRoutingMode)
	fmt.Fprintf(t, "Attach Mode:\tTCX\nDevice Mode:\tveth\n")
	masquerade := "Disabled"
	if s.Masquerading.Enabled {
		masquerade = map[string]string{"BPF": "BPF", "iptables": "IPTables"}[s.Masquerading.Mode]
	}
	fmt.Fprintf(t, "Masquerading:\t%s\n", masquerade)
	fmt.Fprintf(t, "Proxy Status:\tOK, ip %s, 0 redirects active on ports %s, Envoy: %s\n", s.Proxy.IP, s.Proxy.PortRange,
		s.Proxy.EnvoyDeploymentMode)
	fmt.Fprintf(t, "Hubble:\t%s\t%s\n", s.Hubble.State, s.Hubble.Msg)
	fmt.Fprintf(t, "Encryption:\t%s\n", s.Encryption.Mode)
	printHealth(t, a.health(), f.verbose, f.verbose)
	return 0, t.Flush()
}
