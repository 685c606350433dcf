package chart

import (
	_ "embed"
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/syntax"
)

// OwnOptions are the options of Cilium's components that follow a value of Slipway's, with the value's path. The chart writes extraConfig
// last and passes on extraArgs, so that both would take precedence.
var OwnOptions = map[string]string{
	"auto-direct-node-routes": "autoDirectNodeRoutes", "bpf-lb-sock-hostns-only": "socketLB.hostNamespaceOnly",
	"cgroup-root": "cgroup.hostRoot", "cluster-id": "cluster.id", "cluster-name": "cluster.name",
	"connectivity-probe-frequency-ratio": "connectivityProbeFrequencyRatio", "enable-bandwidth-manager": "bandwidthManager.enabled",
	"enable-bbr": "bandwidthManager.bbr", "enable-bgp-control-plane": "bgpControlPlane.enabled", "enable-bpf-masquerade": "bpf.masquerade",
	"enable-gateway-api": "gatewayAPI.enabled", "enable-gateway-api-alpn": "gatewayAPI.enableAlpn",
	"enable-gateway-api-app-protocol": "gatewayAPI.enableAppProtocol", "enable-hubble": "hubble.enabled", "enable-ipv4": "ipv4.enabled",
	"enable-ipv4-masquerade": "enableIPv4Masquerade", "enable-ipv6": "ipv6.enabled", "enable-ipv6-masquerade": "enableIPv6Masquerade",
	"enable-l2-announcements": "l2announcements.enabled", "enable-wireguard": "encryption.enabled",
	"encrypt-node":         "encryption.nodeEncryption",
	"external-envoy-proxy": "envoy.enabled", "ipam": "ipam.mode", "ipv4-native-routing-cidr": "ipv4NativeRoutingCIDR",
	"ipv6-native-routing-cidr": "ipv6NativeRoutingCIDR", "k8s-client-burst": "k8sClientRateLimit.burst",
	"k8s-client-qps": "k8sClientRateLimit.qps", "kube-proxy-replacement": "kubeProxyReplacement",
	"policy-default-local-cluster": "clustermesh.policyDefaultLocalCluster", "routing-mode": "routingMode",
}

// typedOptions has the options of Cilium's agent and operator that are no text, each with its type: bool, duration or number. A test
// writes them from Cilium's reference of its commands.
//
//go:embed options.txt
var typedOptions string

// typeOf returns the type of an option; "" of a text, and of one that is not known.
func typeOf(option string) string {
	_, line, _ := strings.Cut("\n"+typedOptions, "\n"+option+" ")
	kind, _, _ := strings.Cut(line, "\n")
	return kind
}

var typesToWrite = map[string]string{"bool": "true or false", "duration": "a duration with its unit, such as 5m", "number": "a number"}

// takesOption tells whether the agent takes the text of a type: validateConfigMapFlag in pkg/option/config.go, which calls spf13/cast.
func takesOption(kind, text string) (takes bool) {
	var err error
	switch text = strings.TrimSpace(text); kind {
	case "bool":
		_, err = strconv.ParseBool(text)
	case "duration":
		if _, err = time.ParseDuration(text); err != nil {
			_, err = time.ParseDuration(text + "ns")
		}
	case "number":
		if _, err = strconv.ParseFloat(text, 64); err != nil {
			_, err = strconv.ParseInt(text, 0, 64)
		}
	}
	return err == nil || text == ""
}

// checkOptions adds a problem for each option in extraConfig and extraArgs that Slipway sets, and for each that is no text, or of another
// type than Cilium of the known release has.
func checkOptions(findings *cluster.Findings, path, version string, given, own map[string]any) {
	known := cluster.KnowsChart(ReleaseName, version)
	option := func(at, name, text string) {
		if value, is := OwnOptions[name]; is && has(own, value) {
			findings.Found(at, "remove it; where a key of cilium sets it, use that", "%s is an option that Slipway sets by the value %s",
				name, value)
		} else if kind := typeOf(name); known && !takesOption(kind, text) {
			findings.Found(at, "write "+typesToWrite[kind], "%s is no value of %s, and Cilium ends with it", syntax.ShownText(text), name)
		}
	}
	extra, _ := given["extraConfig"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		at := path + ".extraConfig." + name
		text, isText := extra[name].(string)
		if !isText && extra[name] != nil {
			findings.Found(at, "write it in quotes", "%s, and a ConfigMap holds texts only", cluster.ShownKind(extra[name]))
		}
		option(at, name, text)
	}
	operator, _ := given["operator"].(map[string]any)
	for at, section := range map[string]map[string]any{path: given, path + ".operator": operator} {
		args, _ := section["extraArgs"].([]any)
		for i, arg := range args {
			name, text, _ := strings.Cut(strings.TrimLeft(fmt.Sprint(arg), "-"), "=")
			option(cluster.ItemPath(at+".extraArgs", i), name, text)
		}
	}
}

// agentWords are the texts that Cilium 1.20 accepts for values that the chart's schema only calls text: if no other source is given, from
// pkg/option/config.go.
var agentWords = map[string][]string{
	"ingressController.loadbalancerMode": {"dedicated", "shared"},                 // operator/pkg/ingress
	"bpf.datapathMode":                   {"veth", "netkit", "netkit-l2", "auto"}, // pkg/datapath/option/option.go
	// pkg/option/monitor.go
	"bpf.monitorAggregation":    {"none", "disabled", "lowest", "low", "medium", "max", "maximum", "0", "1", "2", "3", "4"},
	"loadBalancer.acceleration": {"disabled", "native", "best-effort", "testing-only"},
	"loadBalancer.algorithm":    {"random", "maglev"},      // pkg/loadbalancer/config.go
	"loadBalancer.dsrDispatch":  {"opt", "ipip", "geneve"}, // likewise
	"loadBalancer.mode":         {"snat", "dsr", "hybrid"}, // likewise
	"policyDenyResponse":        {"icmp", "none", ""},
	"policyEnforcementMode":     {"default", "always", "never"}, // pkg/option/runtime_options.go
	"serviceNoBackendResponse":  {"reject", "drop", ""},
	"tunnelProtocol":            {"vxlan", "geneve", ""},      // pkg/datapath/tunnel
	"underlayProtocol":          {"ipv4", "ipv6", "auto", ""}, // likewise
}

// anyCase are those of agentWords that the chart or the agent writes in lower case before it compares them.
var anyCase = []string{"bpf.monitorAggregation", "policyEnforcementMode"}

// agentRanges are the numbers that Cilium 1.20 takes: checkMapSizeLimits in pkg/option/config.go, and the types of the flags.
var agentRanges = map[string][2]float64{
	"MTU": {0, 65535}, "bpf.authMapMax": {1 << 8, 1 << 24}, "bpf.ctAnyMax": {1 << 10, 1 << 24}, "bpf.ctTcpMax": {1 << 10, 1 << 24},
	"bpf.lbMapMax": {1, 1 << 31}, "bpf.policyMapMax": {1 << 8, 1 << 16}, "bpf.natMax": {1 << 10, 1 << 24}, "tunnelPort": {0, 65535},
}

// maglevSizes are the primes of pkg/maglev/maglev.go.
var maglevSizes = []float64{251, 509, 1021, 2039, 4093, 8191, 16381, 32749, 65521, 131071}

// agentRule is a combination with which Cilium 1.20 ends when it starts, or which its chart refuses.
type agentRule struct {
	path            string // the user's value
	refused         func(e effective) bool
	problem, remedy string
}

// agentRules are from pkg/kpr/initializer/kube_proxy_replacement.go, daemon/cmd/daemon.go, daemon/cmd/daemon_main.go,
// pkg/egressgateway/manager.go, pkg/datapath/linux/bigtcp/bigtcp.go (validateConfig), pkg/datapath/linux/bandwidth/bandwidth.go (probe),
// pkg/datapath/connector/config.go (canUseNetkit), pkg/datapath/tunnel/tunnel.go, pkg/option/config.go, pkg/maglev/maglev.go,
// pkg/loadbalancer/config.go, and templates/validate.yaml of the chart; of Envoy, from starter/main.cc of cilium/proxy.
var agentRules = []agentRule{
	{"loadBalancer.mode", func(e effective) bool {
		return e.dsr() && e.tunnel() && (e.text("tunnelProtocol") != "geneve" || e.text("loadBalancer.dsrDispatch") != "geneve")
	}, "sends answers past the tunnel",
		"write snat, or set tunnelProtocol and loadBalancer.dsrDispatch to geneve, or, in no mesh, cilium.routing: native"},
	{"loadBalancer.dsrDispatch", func(e effective) bool {
		return e.dsr() && !e.tunnel() && e.text("loadBalancer.dsrDispatch") == "geneve" && e.text("tunnelProtocol") != "geneve"
	}, "needs tunnelProtocol: geneve", "add it, or write opt"},
	{"egressGateway.enabled", func(e effective) bool { return e.on("egressGateway.enabled") && !e.bpf() }, needsBPF, setBPF},
	{"egressGateway.enabled", func(e effective) bool { return e.on("egressGateway.enabled") && e.on("ciliumEndpointSlice.enabled") },
		"does not work with ciliumEndpointSlice.enabled", "remove one of the two"},
	{"ipMasqAgent.enabled", func(e effective) bool { return e.on("ipMasqAgent.enabled") && !e.bpf() }, needsBPF, setBPF},
	{"enableMasqueradeRouteSource", func(e effective) bool { return e.on("enableMasqueradeRouteSource") && e.bpf() },
		"does not work with masquerading in BPF", "remove it, or set cilium.masquerade: iptables"},
	{"egressMasqueradeInterfaces", func(e effective) bool { return e.text("egressMasqueradeInterfaces") != "" && e.bpf() },
		"is for masquerading with iptables", "remove it, or set cilium.masquerade: iptables"},
	{"directRoutingSkipUnreachable", func(e effective) bool { return e.on("directRoutingSkipUnreachable") && e.tunnel() },
		needsNative, setNative},
	{"underlayProtocol", func(e effective) bool { return e.text("underlayProtocol") == "ipv6" && e.Network.IPv6 == nil },
		"needs machines with IPv6", "remove it, or declare network.ipv6"},
	{"underlayProtocol", func(e effective) bool { return e.text("underlayProtocol") == "ipv6" && e.on("egressGateway.enabled") },
		"does not work with egressGateway.enabled", "remove one of the two"},
	{"underlayProtocol", func(e effective) bool {
		return e.text("underlayProtocol") == "ipv6" && e.tunnel() &&
			!slices.Contains([]string{"", "disabled"}, e.text("loadBalancer.acceleration"))
	}, "does not work with loadBalancer.acceleration", "remove one of the two"},
	{"installNoConntrackIptablesRules", func(e effective) bool {
		return e.on("installNoConntrackIptablesRules") && (e.tunnel() || !e.bpf())
	}, "needs native routing and masquerading in BPF", "remove it, or, in no mesh, set cilium.routing: native and cilium.masquerade: bpf"},
	{"enableIPv4BIGTCP", func(e effective) bool { return e.on("enableIPv4BIGTCP") && e.noBigTCP() }, bigTCP, setBigTCP},
	{"enableIPv6BIGTCP", func(e effective) bool { return e.on("enableIPv6BIGTCP") && e.noBigTCP() }, bigTCP, setBigTCP},
	{"enableIPv4BIGTCP", func(e effective) bool { return e.on("enableIPv4BIGTCP") && e.tunnel() }, needsNative, setNative},
	{"enableIPv6BIGTCP", func(e effective) bool { return e.on("enableIPv6BIGTCP") && e.tunnel() }, needsNative, setNative},
	{"enableIPv4BIGTCP", func(e effective) bool { return e.on("enableIPv4BIGTCP") && e.moreTunnels() }, noTunnels, endTunnels},
	{"enableIPv6BIGTCP", func(e effective) bool { return e.on("enableIPv6BIGTCP") && e.moreTunnels() }, noTunnels, endTunnels},
	{"bandwidthManager.bbrHostNamespaceOnly", func(e effective) bool {
		return e.on("bandwidthManager.bbrHostNamespaceOnly") && !e.bbr()
	}, "needs BBR", "set cilium.bandwidthManager: bbr, or remove it"},
	{"bpf.hostLegacyRouting", func(e effective) bool {
		return e.on("bpf.hostLegacyRouting") && e.bbr() && !e.on("bandwidthManager.bbrHostNamespaceOnly")
	}, "takes the routing in BPF away that BBR needs", "remove it, or set cilium.bandwidthManager: edt"},
	{"bpf.datapathMode", func(e effective) bool {
		return strings.HasPrefix(e.text("bpf.datapathMode"), "netkit") && e.on("bpf.hostLegacyRouting")
	}, needsHostRouting, "write veth, or remove bpf.hostLegacyRouting"},
	{"bpf.datapathMode", func(e effective) bool { return strings.HasPrefix(e.text("bpf.datapathMode"), "netkit") && !e.bpf() },
		needsBPF, "set cilium.masquerade: bpf, or write veth"},
	{"encryption.strictMode.egress.enabled", func(e effective) bool {
		return e.on("encryption.strictMode.egress.enabled") && e.text("encryption.strictMode.egress.cidr") == ""
	}, "has no range of addresses", "add encryption.strictMode.egress.cidr with the pods' range, network.podCIDR"},
	{"authentication.mutual.spire.enabled", func(e effective) bool {
		return e.on("authentication.mutual.spire.enabled") && !e.on("authentication.enabled")
	}, "needs authentication.enabled", "add authentication.enabled: true, or remove it"},
	{"nat46x64Gateway.enabled", func(e effective) bool { return e.on("nat46x64Gateway.enabled") && e.Network.IPv6 == nil },
		"needs both families of addresses", "remove it, or declare network.ipv6"},
	{"l7Proxy", func(e effective) bool { return e.at("l7Proxy") == false && e.Cilium.GatewayAPI },
		"leaves out the proxy that gateways need", "remove it, or set cilium.gatewayAPI: false"},
	{"l7Proxy", func(e effective) bool {
		return e.at("l7Proxy") == false && !e.Cilium.GatewayAPI &&
			(e.on("ingressController.enabled") || e.text("loadBalancer.l7.backend") == "envoy")
	}, "leaves out the proxy that ingressController and loadBalancer.l7 need", "remove it, or them"},
	{"envoy.securityContext.capabilities.envoy", func(e effective) bool {
		return !e.grantsEnvoy("NET_ADMIN") || !e.grantsEnvoy("SYS_ADMIN") && !e.grantsEnvoy("BPF")
	}, "lacks capabilities without which Envoy's starter ends", "add NET_ADMIN and SYS_ADMIN"},
	{"envoy.securityContext.capabilities.keepCapNetBindService", func(e effective) bool {
		return e.on("envoy.securityContext.capabilities.keepCapNetBindService") && !e.grantsEnvoy("NET_BIND_SERVICE")
	}, "keeps a capability that Envoy is not given",
		"remove it, or add NET_BIND_SERVICE to envoy.securityContext.capabilities.envoy, beside NET_ADMIN and SYS_ADMIN"},
	{"hubble.redact.http.headers.allow", func(e effective) bool {
		allow, _ := e.at("hubble.redact.http.headers.allow").([]any)
		deny, _ := e.at("hubble.redact.http.headers.deny").([]any)
		return len(allow) > 0 && len(deny) > 0
	}, "is beside hubble.redact.http.headers.deny", "keep one of the two"},
	{"bpf.tproxy", func(e effective) bool {
		return e.on("bpf.tproxy") && strings.HasPrefix(e.text("bpf.datapathMode"), "netkit")
	}, "does not work with netkit", "remove it, or write bpf.datapathMode: veth"},
	{"clustermesh.maxConnectedClusters", func(e effective) bool {
		return !slices.Contains([]string{"255", "511"}, e.text("clustermesh.maxConnectedClusters"))
	}, "is neither of the two sizes of a mesh", "write 255 or 511"},
	{"standaloneDnsProxy.enabled", func(e effective) bool {
		port, _ := e.number("dnsProxy.proxyPort")
		return e.on("standaloneDnsProxy.enabled") && port == 0
	}, "needs a port", "add dnsProxy.proxyPort, such as 10094"},
	{"ciliumEndpointSlice.enabled", func(e effective) bool {
		return e.on("ciliumEndpointSlice.enabled") && e.on("disableEndpointCRD")
	}, "needs the objects that disableEndpointCRD leaves out", "remove one of the two"},
	{"operator.setNodeTaints", func(e effective) bool {
		return e.on("operator.setNodeTaints") && e.at("operator.removeNodeTaints") == false
	}, "sets taints that nothing removes", "remove operator.removeNodeTaints: false"},
	{"identityAllocationMode", func(e effective) bool { return e.text("identityAllocationMode") != "crd" },
		"needs an etcd of Cilium's own", "remove it"},
	{"bpf.natMax", func(e effective) bool {
		nat, natIs := e.number("bpf.natMax")
		tcp, tcpIs := e.number("bpf.ctTcpMax")
		other, otherIs := e.number("bpf.ctAnyMax")
		return natIs && tcpIs && otherIs && nat > tcp+other
	}, "is more than bpf.ctTcpMax and bpf.ctAnyMax together", "write at most their sum, or remove it"},
	{"bpf.mapDynamicSizeRatio", func(e effective) bool {
		ratio, err := strconv.ParseFloat(e.text("bpf.mapDynamicSizeRatio"), 64)
		return err != nil || ratio < 0 || ratio > 1 // the chart takes 0 for its own default
	}, "is no share of the memory", "write a number above 0 and up to 1, such as 0.0025"},
	{"maglev.tableSize", func(e effective) bool {
		size, err := strconv.ParseFloat(e.text("maglev.tableSize"), 64)
		return err != nil || !slices.Contains(maglevSizes, size)
	}, "is not one of the primes that the agent takes", "write 251, 509, 1021, 2039, 4093, 8191, 16381, 32749, 65521 or 131071"},
	{"maglev.hashSeed", func(e effective) bool {
		seed, err := base64.StdEncoding.DecodeString(e.text("maglev.hashSeed"))
		return err != nil || len(seed) != 12
	}, "is not 12 bytes in base64", "make one with: head -c12 /dev/urandom | base64"},
	{"cni.chainingMode", func(e effective) bool {
		return slices.Contains([]string{"aws-cni", "azure", "flannel"}, e.text("cni.chainingMode"))
	}, "needs that CNI on the nodes, which have only Cilium", "remove it"},
	{"healthPort", func(e effective) bool {
		return slices.Contains([]string{"2379", "2380", "6443", "7445", "10250", "10257", "10259", "50000", "50001"}, e.text("healthPort"))
	}, "is a port that Talos or Kubernetes has on the node", "remove it"},
	{"hubble.listenAddress", func(e effective) bool {
		_, port, err := net.SplitHostPort(e.text("hubble.listenAddress"))
		_, noPort := strconv.ParseUint(port, 10, 16)
		return e.text("hubble.listenAddress") != "" && (err != nil || noPort != nil)
	}, "is no address with a port", "write :4244, or one before it"},
	{"hubble.eventBufferCapacity", func(e effective) bool {
		size, err := strconv.ParseUint(e.text("hubble.eventBufferCapacity"), 10, 16)
		return err != nil || size == 0 || size&(size+1) != 0
	}, "is not one less than a power of two", "write such a number, as 4095 or 8191"},
	{"bpf.events.default.rateLimit", func(e effective) bool { return e.some("rateLimit") && !e.some("burstLimit") },
		"is taken only with the other limit", "add bpf.events.default.burstLimit"},
	{"bpf.events.default.burstLimit", func(e effective) bool { return e.some("burstLimit") && !e.some("rateLimit") },
		"is taken only with the other limit", "add bpf.events.default.rateLimit"},
	{"localRedirectPolicies.addressMatcherCIDRs", func(e effective) bool {
		given, _ := e.at("localRedirectPolicies.addressMatcherCIDRs").([]any)
		return slices.ContainsFunc(given, func(one any) bool { _, err := netip.ParsePrefix(fmt.Sprint(one)); return err != nil })
	}, "has an item that is no network", "write each with its length, such as 169.254.169.254/32"},
	{"tolerations", func(e effective) bool { return e.waits("tolerations") }, waitsForItself, tolerate},
	{"operator.tolerations", func(e effective) bool { return e.waits("operator.tolerations") }, waitsForItself, tolerate},
	{"operator.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution", func(effective) bool { return true },
		"is not read by the gate, which counts the nodes for the operator", "remove it, and write operator.nodeSelector"},
	{"nodePort.range", func(e effective) bool {
		first, last, _ := strings.Cut(e.text("nodePort.range"), ",")
		least, err1 := strconv.ParseUint(first, 10, 16)
		most, err2 := strconv.ParseUint(last, 10, 16)
		return err1 != nil || err2 != nil || most <= least
	}, "is no range of ports", `write the first and the last, such as "30000,32767"`},
}

const (
	// Kubernetes puts this taint on a node that is not Ready, and a node is Ready only with Cilium.
	notReady         = "node.kubernetes.io/not-ready"
	waitsForItself   = "keeps the pods off nodes that are not Ready, which they are only with Cilium"
	tolerate         = "add {key: " + notReady + ", operator: Exists}, or {operator: Exists} alone"
	needsHostRouting = "needs host routing in BPF"
	setHostRouting   = "set cilium.masquerade: bpf, and remove bpf.hostLegacyRouting"
	needsBPF         = "needs masquerading in BPF"
	setBPF           = "set cilium.masquerade: bpf, or remove it"
	bigTCP           = needsHostRouting + " and no encryption"
	setBigTCP        = "remove it, or " + setHostRouting + ", and set cilium.encryption: none"
	needsNative      = "needs native routing"
	setNative        = "remove it, or, in no mesh, set cilium.routing: native"
	noTunnels        = "does not work with the tunnels of egressGateway.enabled and of a loadBalancer.dsrDispatch other than opt"
	endTunnels       = "remove it, or these values"
)

// checkAgent adds a problem for each of the user's values that Cilium's agent refuses.
func checkAgent(findings *cluster.Findings, path string, v Values, given map[string]any) {
	e := effective{v, given}
	for _, at := range slices.Sorted(maps.Keys(agentWords)) {
		text, isText := e.at(at).(string)
		compared := text
		if slices.Contains(anyCase, at) {
			compared = strings.ToLower(text)
		}
		if words := agentWords[at]; isText && !slices.Contains(words, compared) {
			written := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return word == "" })
			findings.Found(cluster.KeyPath(path, at), "write "+strings.Join(written, " or "), "%s is not known to the agent",
				syntax.ShownText(text))
		}
	}
	for _, at := range slices.Sorted(maps.Keys(agentRanges)) {
		value, is := e.number(at)
		if limits := agentRanges[at]; is && (value < limits[0] || value > limits[1]) {
			findings.Found(cluster.KeyPath(path, at), fmt.Sprintf("write a number from %.0f to %.0f", limits[0], limits[1]),
				"%s is out of the agent's range", strconv.FormatFloat(value, 'f', -1, 64))
		}
	}
	for _, rule := range agentRules {
		if e.at(rule.path) != nil && rule.refused(e) {
			shown := e.text(rule.path)
			if strings.HasPrefix(shown, "[map[") {
				shown = "the list"
			} else if strings.HasPrefix(shown, "map[") {
				shown = "the mapping"
			}
			findings.Found(cluster.KeyPath(path, rule.path), rule.remedy, "%s %s", shown, rule.problem)
		}
	}
}

// effective are a cluster's choices with the user's values.
type effective struct {
	Values
	given map[string]any
}

// at returns one of the user's values; nil if it is not given.
func (e effective) at(path string) any { return cluster.ValueAt(e.given, path) }

// text returns a value as text; "" without one. The chart's defaults of what rules read are vxlan, opt and snat.
func (e effective) text(path string) string {
	if value := e.at(path); value != nil {
		return fmt.Sprint(value)
	}
	return ""
}

func (e effective) number(path string) (float64, bool) {
	number, is := e.at(path).(float64)
	return number, is
}

// some tells whether there is a limit of events; 0 is none.
func (e effective) some(limit string) bool {
	number, _ := e.number("bpf.events.default." + limit)
	return number > 0
}

// waits tells whether pods with tolerations of the user wait for a node that is Ready.
func (e effective) waits(path string) bool {
	given, isList := e.at(path).([]any)
	return isList && !slices.ContainsFunc(given, func(one any) bool {
		of, _ := one.(map[string]any)
		return slices.Contains([]any{nil, "", notReady}, of["key"]) && slices.Contains([]any{nil, "", "NoSchedule"}, of["effect"])
	})
}

func (e effective) on(path string) bool { return e.at(path) == true }
func (e effective) bpf() bool           { return e.Cilium.Masquerade == cluster.MasqueradeBPF }
func (e effective) tunnel() bool        { return e.Cilium.Routing != cluster.RoutingNative }
func (e effective) dsr() bool {
	mode := e.text("loadBalancer.mode")
	return mode == "dsr" || mode == "hybrid"
}
func (e effective) bbr() bool { return e.Cilium.BandwidthManager == cluster.BandwidthBBR }

// hostRouting tells whether packets between pods and the network pass the host's own stack by. Without masquerading in BPF, they never do.
func (e effective) hostRouting() bool { return e.bpf() && !e.on("bpf.hostLegacyRouting") }
func (e effective) noBigTCP() bool {
	return !e.hostRouting() || e.Cilium.Encryption != cluster.EncryptionNone
}

// moreTunnels tells whether agents make tunnels also with native routing. BIG TCP works in none with the kernels that Talos has.
func (e effective) moreTunnels() bool {
	return e.on("egressGateway.enabled") || !slices.Contains([]string{"", "opt"}, e.text("loadBalancer.dsrDispatch"))
}

// grantsEnvoy tells whether Envoy's container has a capability by the user's list. Without one it has those of the chart, which are enough
// for all but ports below 1024 of the node.
func (e effective) grantsEnvoy(capability string) bool {
	given, _ := e.at("envoy.securityContext.capabilities.envoy").([]any)
	return slices.Contains(given, any(capability)) || e.on("envoy.securityContext.privileged")
}
