package cluster

import (
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/siderolabs/gen/xslices"
)

// Setting is a value of the cluster that manifests of the GitOps tree use as ${KEY}. Flux substitutes it from the ConfigMap
// cluster-settings.
type Setting struct {
	Key     string
	From    string // key of the stack file that it follows
	Meaning string // Markdown

	value func(*Cluster) string // "" means that this stack does not define the setting
}

// Settings are all settings, in the order of the reference. A rename of one breaks the tree.
var Settings = slices.Concat([]Setting{
	{"CLUSTER_NAME", "cluster.name", "name of the cluster", func(c *Cluster) string { return c.Identity.Name }},
	{"CLUSTER_ID", "cluster.id", "number of the cluster in a mesh", func(c *Cluster) string { return strconv.Itoa(c.Identity.ID) }},
	{"POD_CIDR", "network.podCIDR", "the pods' IPv4 network", func(c *Cluster) string { return c.Network.PodCIDR.String() }},
	{"SERVICE_CIDR", "network.serviceCIDR", "the Services' IPv4 network", func(c *Cluster) string { return c.Network.ServiceCIDR.String() }},
	{"CLUSTER_VIP", "network.vip", "address of the Kubernetes API", func(c *Cluster) string { return c.Network.VIP.String() }},
	{"LB_POOL_START", "network.loadBalancers.start", "first IPv4 address of the Services of type LoadBalancer",
		func(c *Cluster) string { return c.Network.LoadBalancers.Start.String() }},
	{"LB_POOL_STOP", "network.loadBalancers.stop", "last of these addresses",
		func(c *Cluster) string { return c.Network.LoadBalancers.Stop.String() }},
	{"LB_POOL_BLOCKS", "network.loadBalancers", "these addresses, of both families, as a list in JSON, which is YAML, too: " +
		"`spec.blocks` of a CiliumLoadBalancerIPPool", func(c *Cluster) string { return asJSON(c.poolBlocks()) }},
	{"LB_ANNOUNCE", "network.loadBalancers.announce", "how these addresses become known",
		func(c *Cluster) string { return string(c.Network.LoadBalancers.Announce) }},
	{"MESH_IP", "network.loadBalancers.mesh", "address of the cluster mesh; only with `mesh.peers`, or if the file has it",
		func(c *Cluster) string { return textOf(c.Network.LoadBalancers.Mesh) }},
	{"GATEWAY_IP", "network.loadBalancers.gateway", "address of the gateway",
		func(c *Cluster) string { return c.Network.LoadBalancers.Gateway.String() }},
	{"SOURCE_KIND", "gitops", "kind of the source that Flux syncs from",
		only(func(c *Cluster) bool { return !byArgoCD(c) }, func(c *Cluster) string { return string(c.GitOps.Source().Kind) })},
	{"SOURCE_URL", "gitops.url", "the repository, for Applications; only with `engine: argocd`",
		only(byArgoCD, func(c *Cluster) string { return c.GitOps.URL })},
	{ArgoCDChecksum, "gitops.settings", "checksum of the other settings, for the plugin of Applications; only with `engine: argocd`",
		func(*Cluster) string { return "" }}, // which Settings adds
	{"SOURCE_BRANCH", "gitops.branch", "the branch, for Applications; only with `engine: argocd`",
		only(byArgoCD, func(c *Cluster) string { return c.GitOps.Branch })},
	{"BGP_ASN", "network.loadBalancers.bgp.asn", "number of the machines' autonomous system; only with `announce: bgp`",
		only(hasBGP, func(c *Cluster) string { return strconv.Itoa(c.Network.LoadBalancers.BGP.ASN) })},
	{"BGP_PEERS", "network.loadBalancers.bgp.peers", "the routers, as a list in JSON: `peers` of a CiliumBGPClusterConfig; " +
		"only with `announce: bgp`", only(hasBGP, func(c *Cluster) string { return asJSON(c.bgpPeers()) })},
}, metricsServerSettings, storageSettings, localSettings, backupSettings)

// only makes a setting one of the clusters of which a condition is true.
func only(is func(*Cluster) bool, value func(*Cluster) string) func(*Cluster) string {
	return func(c *Cluster) string {
		if !is(c) {
			return ""
		}
		return value(c)
	}
}

func byArgoCD(c *Cluster) bool { return c.GitOps.ByArgoCD() }

func hasBGP(c *Cluster) bool { return c.Network.LoadBalancers.BGP != nil }

// textOf returns an address as text, "" if it is not set.
func textOf(address netip.Addr) string {
	if !address.IsValid() {
		return ""
	}
	return address.String()
}

// DomainSetting is the setting, of the stack file, with the domain of the names behind the cluster's gateway. The tree in this repository
// uses it: a gateway answers for all names in it, and external-dns keeps its records.
const DomainSetting = "DOMAIN"

// Domain returns the domain of the names behind the gateway, in lower case; "" if nothing is applied that uses it.
func (g GitOps) Domain() string {
	if !g.Enabled {
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(g.Settings[DomainSetting], "."))
}

// Settings returns the values of the settings that the cluster defines, and of those that its stack file adds.
func (c *Cluster) Settings() map[string]string {
	values := map[string]string{}
	maps.Copy(values, c.GitOps.Settings)
	for _, setting := range Settings {
		if value := setting.value(c); value != "" {
			values[setting.Key] = value
		}
	}
	if c.GitOps.ByArgoCD() {
		values[ArgoCDChecksum] = Checksum(asJSON(values)) // with its keys in order
	}
	return values
}

// poolBlocks returns the addresses of Services as blocks of CiliumLoadBalancerIPPool.
func (c *Cluster) poolBlocks() []mapping {
	var blocks []mapping
	for _, f := range c.Network.families() {
		if f.start.IsValid() {
			blocks = append(blocks, mapping{"start": f.start, "stop": f.stop})
		}
	}
	return blocks
}

// bgpPeers returns the routers as peers of CiliumBGPClusterConfig. The tree has one CiliumBGPPeerConfig, which has the name of the cluster.
func (c *Cluster) bgpPeers() []mapping {
	return xslices.Map(c.Network.LoadBalancers.BGP.Peers, func(peer BGPPeer) mapping {
		return mapping{
			"name": peer.Address, "peerASN": peer.ASN, "peerAddress": peer.Address, "peerConfigRef": mapping{"name": c.Identity.Name},
		}
	})
}

// asJSON writes a value of texts and numbers.
func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic("cluster: a cluster setting cannot be written: " + err.Error())
	}
	return string(text)
}
