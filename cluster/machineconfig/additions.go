package machineconfig

import (
	"fmt"
	"maps"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/types/block"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/syntax"
)

// checkAdditions refuses what patches add beside, or with effect instead of, a value that Slipway sets: a further address of
// the network device, a second file of the same path, a rule that closes a port.
func (c *comparison) checkAdditions() {
	for _, name := range slices.Sorted(maps.Keys(c.after)) {
		if isDocument(name) && !same(c.base[name], c.after[name]) {
			c.checkDocument(name, c.after[name])
		}
	}
	machine, before := c.after["machine"], c.base["machine"]
	c.checkKeys(before, machine, "nodeLabels", checkLabel)
	c.checkKeys(before, machine, "nodeTaints", c.checkTaint)
	c.checkKeys(before, machine, "sysctls", func(name string, value any) (string, string) {
		if c.cluster.BreaksNetwork(name, fmt.Sprint(value)) {
			return cluster.BrokenNetwork, removeIt
		}
		return "", ""
	})
	c.checkFiles(before, machine)
}

func (c *comparison) add(path []string, problem, remedy string) {
	if problem != "" {
		c.found = append(c.found, fault{strings.Join(path, "."), problem, remedy})
	}
}

// checkKeys checks what is new or different in one mapping of machine.
func (c *comparison) checkKeys(before, machine any, part string, check func(key string, value any) (problem, remedy string)) {
	values, _ := at(machine, part).(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if value := values[key]; at(before, part, key) == nil {
			problem, remedy := check(key, value)
			c.add([]string{"machine", part, key}, problem, remedy)
		}
	}
}

// checkLabel refuses the labels that a node may not set on itself. NodeRestriction refuses the whole update that contains one.
func checkLabel(key string, _ any) (problem, remedy string) {
	if len(validation.IsQualifiedName(key)) > 0 {
		return "is no label of Kubernetes", "write a name, after a domain and a slash if you like, such as example.com/team"
	}
	if form, _ := syntax.Lookup("node-label-key"); form.Check(key) != nil {
		return "is a label that a node may not set on itself", removeIt
	}
	return "", ""
}

// checkTaint refuses taints of workers, which Talos cannot apply, and the taint that decides where ordinary pods run.
func (c *comparison) checkTaint(key string, _ any) (problem, remedy string) {
	switch {
	case c.node.Role != cluster.ControlPlane:
		return "is a taint of a worker, which Talos may not change, nor labels together with it", "set nodePools[].taints instead"
	case key == "node-role.kubernetes.io/control-plane", key == "node-role.kubernetes.io/master":
		return "decides whether ordinary pods run on control planes, and Slipway sets that",
			"set kubernetes.allowSchedulingOnControlPlanes instead"
	}
	return "", ""
}

// checkFiles refuses a second text for a file that Slipway writes.
func (c *comparison) checkFiles(before, machine any) {
	own, _ := at(before, "files").([]any)
	items, _ := further(own, at(machine, "files"))
	for _, item := range items {
		for _, file := range own {
			if cleanPath(at(file, "path")) == cleanPath(at(item, "path")) {
				c.add([]string{"machine", "files"}, "writes a file that Slipway writes", removeIt)
			}
		}
	}
}

// cleanPath is a file's path in its shortest form.
func cleanPath(value any) string {
	text, _ := value.(string)
	return path.Clean("/" + text)
}

// links are the kinds of documents that configure a network device.
var links = []string{
	"BondConfig", "BridgeConfig", "DHCPv4Config", "DHCPv6Config", "DummyLinkConfig", "LinkConfig", "VLANConfig", "WireguardConfig",
}

// checkDocument checks a document that is new or different.
func (c *comparison) checkDocument(document string, value any) {
	kind, name, _ := strings.Cut(document, " ")
	problem, remedy := "", ""
	registry := faultOf(registryDocuments[kind], name)
	switch {
	case isOneOf("BondConfig", "BridgeConfig", "DummyLinkConfig", "VLANConfig", "WireguardConfig")(kind) && len(name) > 15:
		problem, remedy = "has a longer name than Linux takes for a network device", "write at most 15 characters"
	case slices.Contains(links, kind):
		problem, remedy = c.checkLink(name, value)
	case kind == "NetworkDefaultActionConfig" && at(value, "ingress") == "block":
		problem, remedy = "closes the ports that Slipway, etcd, Kubernetes and Cilium need",
			"set ingress: accept, and filter with Cilium's policies"
	case registry != nil:
		problem, remedy = registry.Problem, registry.Remedy
	case strings.HasSuffix(kind, "VolumeConfig") && c.outgrows(value):
		problem, remedy = "has to be larger than the system disk", "lower provisioning.minSize, or raise nodePools[].disk"
	case kind == "NetworkRuleConfig":
		problem, remedy = checkFirewallRule(value)
	case kind == "RegistryMirrorConfig" && c.cluster.Talos.RegistryMirrors[name] != nil:
		problem, remedy = "is the second declaration of this registry's mirrors", "set talos.registryMirrors instead"
	}
	c.add([]string{document}, problem, remedy)
}

// registryDocuments are the forms of the names of documents about registries.
var registryDocuments = map[string]string{
	"RegistryAuthConfig": registryEndpoint, "RegistryMirrorConfig": imageRegistry, "RegistryTLSConfig": registryEndpoint,
}

// faultOf is what is wrong with a text of a form. Without a form, every text is right.
func faultOf(form, text string) *syntax.Fault {
	if form == "" || form == registryEndpoint && text == "*" {
		return nil
	}
	of, _ := syntax.Lookup(form)
	return of.Check(text)
}

// outgrows tells whether a volume of the system disk must be larger than the disk. Talos would wait for another disk for ever.
func (c *comparison) outgrows(volume any) bool {
	provisioning := at(volume, "provisioning")
	match, given := at(provisioning, "diskSelector", "match").(string)
	text, _ := at(provisioning, "minSize").(string)
	var least block.ByteSize
	disk := uint64(c.node.Disk) //nolint:gosec // a size is not negative
	return (!given || match == "system_disk") && least.UnmarshalText([]byte(text)) == nil && least.Value() > disk
}

// physicalLink is how Linux names the network devices of a VM. The names of VLANs on them have a dot.
var physicalLink = regexp.MustCompile(`^(en|eth)[a-z0-9]*$`)

// checkLink refuses a document about the machine's one network device, and addresses and routes in the cluster's networks.
func (c *comparison) checkLink(name string, value any) (problem, remedy string) {
	if physicalLink.MatchString(name) {
		return "configures the machine's network device, and Slipway configures it",
			"set network.nodeCIDR, network.gateway and nodePools[].nodes[].address instead, and give a further link another name"
	}
	for _, link := range items(value, "links") {
		if text, _ := link.(string); physicalLink.MatchString(text) {
			return "takes the machine's network device, which holds the node's address", removeIt
		}
	}
	for _, address := range items(value, "addresses") {
		text, _ := at(address, "address").(string)
		if network, err := netip.ParsePrefix(text); err != nil || c.overlaps(network) {
			return "has an address in a network of the cluster", "use an address outside of all networks in network"
		}
	}
	for _, route := range items(value, "routes") {
		text, _ := at(route, "destination").(string)
		if network, err := netip.ParsePrefix(text); err != nil || network.Bits() == 0 {
			return "has a default route, and Slipway sets that", "set network.gateway instead"
		} else if c.overlaps(network) {
			return "has a route to a network of the cluster", "remove the route"
		}
	}
	return "", ""
}

func items(tree any, key string) []any {
	list, _ := at(tree, key).([]any)
	return list
}

// overlaps tells whether a network shares addresses with one of the cluster's.
func (c *comparison) overlaps(network netip.Prefix) bool {
	n := c.cluster.Network
	networks := slices.Concat([]netip.Prefix{n.NodeCIDR}, n.PodCIDRs(), n.ServiceCIDRs())
	if n.IPv6 != nil {
		networks = append(networks, n.IPv6.NodeCIDR)
	}
	return slices.ContainsFunc(networks, func(other netip.Prefix) bool { return other.IsValid() && other.Overlaps(network) })
}

// neededPorts are the ports of the machines that Slipway, etcd, Kubernetes and Cilium use, by protocol.
var neededPorts = map[string][]int{
	"tcp": {
		2379, 2380, // etcd
		4240, 4244, // health and Hubble of Cilium
		cluster.APIPort,
		10250,        // kubelet
		50000, 50001, // Talos API, and the one between machines
	},
	"udp": {
		8472,  // Cilium's tunnel
		51871, // Cilium's encryption
	},
}

// checkFirewallRule refuses a rule for a port that Slipway needs: a rule closes its ports to all addresses that it does not name.
func checkFirewallRule(value any) (problem, remedy string) {
	selector := at(value, "portSelector")
	protocol, _ := at(selector, "protocol").(string)
	for _, port := range items(selector, "ports") {
		first, last, isRange := strings.Cut(fmt.Sprint(port), "-")
		if !isRange {
			last = first
		}
		low, errLow := strconv.Atoi(first)
		high, errHigh := strconv.Atoi(last)
		if errLow != nil || errHigh != nil {
			continue // Talos refuses it
		}
		for _, needed := range neededPorts[protocol] {
			if low <= needed && needed <= high {
				return "closes a port that Slipway, etcd, Kubernetes or Cilium needs to all addresses that it does not name",
					"leave out port " + strconv.Itoa(needed)
			}
		}
	}
	return "", ""
}
