package machineconfig

import (
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/syntax"
)

// Flags that the user may set: they tune a component, and change nothing that Slipway sets or relies on. Names are compared without
// case, hyphens and underscores; "*" at the end is any ending.
var (
	apiServerFlags = []string{
		"audit-*", "default-not-ready-toleration-seconds", "default-unreachable-toleration-seconds", "enable-aggregator-routing",
		"event-ttl", "feature-gates", "goaway-chance", "http2-*", "livez-*", "logging-format", "max-mutating-requests-inflight",
		"max-requests-inflight", "min-request-timeout", "oidc-*", "profiling", "request-timeout", "runtime-config",
		"shutdown-*", "tls-cipher-suites", "tls-min-version", "tracing-*", "v", "vmodule", "watch-cache*",
	}
	controllerManagerFlags = []string{
		"attach-detach-*", "bind-address", "concurrent-*", "feature-gates", "horizontal-pod-autoscaler-*", "kube-api-burst",
		"kube-api-qps", "large-cluster-size-threshold", "logging-format", "min-resync-period", "namespace-sync-period",
		"node-eviction-rate", "node-monitor-*", "node-startup-grace-period", "profiling", "pv-recycler-*", "pvclaimbinder-sync-period",
		"resource-quota-sync-period", "secondary-node-eviction-rate", "terminated-pod-gc-threshold", "tls-cipher-suites",
		"tls-min-version", "unhealthy-zone-threshold", "v", "vmodule",
	}
	schedulerFlags = []string{
		"bind-address", "feature-gates", "kube-api-burst", "kube-api-qps", "logging-format", "pod-max-in-unschedulable-pods-duration",
		"profiling", "tls-cipher-suites", "tls-min-version", "v", "vmodule",
	}
	etcdFlags = []string{
		"auto-compaction-*", "backend-*", "election-timeout", "experimental-compact-*", "heartbeat-interval", "listen-metrics-urls",
		"log-level", "max-concurrent-streams", "max-request-bytes", "max-snapshots", "max-txn-ops", "max-wals", "metrics",
		"quota-backend-bytes", "snapshot-count",
	}
	// kubeletSettings are flags and fields of KubeletConfiguration.
	kubeletSettings = []string{
		"allowed-unsafe-sysctls", "container-log-*", "contention-profiling", "cpu-cfs-quota*", "cpu-manager-*",
		"crash-loop-back-off", "enable-debugging-handlers", "enable-profiling-handler", "enforce-node-allocatable", "event-burst",
		"event-qps", "event-record-qps", "eviction-*", "fail-swap-on", "feature-gates", "image-gc-*", "image-maximum-gc-age",
		"image-minimum-gc-age", "image-pull-progress-deadline", "kernel-memcg-notification", "kube-api-burst", "kube-api-qps",
		"kube-reserved", "kube-reserved-memory", "local-storage-capacity-isolation", "logging*", "max-open-files",
		"max-parallel-image-pulls", "memory-manager-*", "memory-swap", "memory-throttling-factor", "minimum-image-ttl-duration",
		"node-status-report-frequency", "node-status-update-frequency", "nodefs-*", "pod-max-pids", "pod-pids-limit",
		"pods-per-core", "registry-burst", "registry-pull-qps", "registry-qps", "reserved-cpus", "reserved-memory",
		"reserved-system-cpus", "rotate-server-certificates", "runtime-request-timeout", "serialize-image-pulls",
		"server-tls-bootstrap", "shutdown-grace-period*", "streaming-connection-idle-timeout", "sync-frequency", "system-reserved",
		"system-reserved-memory", "tls-cipher-suites", "tls-min-version", "topology-manager-*", "tracing", "user-namespaces", "v",
		"vmodule", "volume-stats-agg-period",
	}
)

// kubeletDeclarations are the keys of the stack that declare what kubelet can also be told by a flag or a field.
var kubeletDeclarations = map[string]string{
	"clusterdns":         "network.serviceCIDR",
	"hostnameoverride":   "nodePools[].nodes[].name",
	"maxpods":            "talos.kubelet.maxPods",
	"nodeip":             "network.nodeCIDR",
	"nodelabels":         "nodePools[].labels",
	"podcidr":            "network.podCIDR",
	"registerwithtaints": "nodePools[].taints",
}

// plainName is a flag's or field's name without case, hyphens and underscores: kubelet takes node_ip for node-ip, and its
// configuration has the same setting as nodeIP.
func plainName(name string) string {
	return strings.ToLower(separators.Replace(name))
}

var separators = strings.NewReplacer("-", "", "_", "", ".", "")

// isListed tells whether a flag or field is one of a list.
func isListed(list []string, name string) bool {
	for _, listed := range list {
		beginning, anyEnding := strings.CutSuffix(plainName(listed), "*")
		if plain := plainName(name); plain == beginning || anyEnding && strings.HasPrefix(plain, beginning) {
			return true
		}
	}
	return false
}

// checkFlag allows the flags of a list.
func checkFlag(list []string) func(*comparison, []string, any) refusal {
	return func(_ *comparison, path []string, value any) refusal {
		name := path[len(path)-1]
		if text, _ := value.(string); plainName(name) == "runtimeconfig" && turnsOff(text) {
			return refusal{problem: "turns off an API of Kubernetes", remedy: removeIt}
		}
		if isListed(list, name) {
			return checkFlagName(name)
		}
		return refusal{problem: "is a flag that Slipway does not know to be harmless", remedy: removeIt}
	}
}

// turnsOff tells whether one of NAME=BOOLEAN,… is false in any spelling that Kubernetes reads.
func turnsOff(settings string) bool {
	for _, setting := range strings.Split(settings, ",") {
		_, value, _ := strings.Cut(setting, "=")
		if on, err := strconv.ParseBool(strings.TrimSpace(value)); err == nil && !on {
			return true
		}
	}
	return false
}

// flagName is how Kubernetes and etcd spell flags, but for underscores, which Kubernetes takes for hyphens.
var flagName = regexp.MustCompile(`^[a-z0-9]+([-_][a-z0-9]+)*$`)

// checkFlagName refuses the spelling that no component knows: it would not start.
func checkFlagName(name string) refusal {
	if flagName.MatchString(name) {
		return refusal{}
	}
	return refusal{problem: "is not how a flag is spelt", remedy: "write it in lower case, with hyphens between its words"}
}

// checkKubelet allows the settings that change nothing but how kubelet uses the node.
func checkKubelet(_ *comparison, path []string, _ any) refusal {
	name := path[3] // machine.kubelet.extraArgs.NAME, machine.kubelet.extraConfig.NAME
	refused := checkKubeletSetting(name)
	switch {
	case refused.problem != "":
		return refused
	case path[2] == "extraArgs":
		return checkFlagName(name)
	case strings.ContainsAny(name, "-_"):
		return refusal{problem: "is not how a field is spelt", remedy: "write it as KubeletConfiguration does, such as eventRecordQPS"}
	}
	return refusal{}
}

// checkKubeletSetting does the same for the name of a flag or field.
func checkKubeletSetting(name string) refusal {
	if key := kubeletDeclarations[plainName(name)]; key != "" {
		return refusal{problem: "is a setting of kubelet that Slipway sets", remedy: "set " + key + " instead"}
	}
	if isListed(kubeletSettings, name) {
		return refusal{}
	}
	return refusal{problem: "is a setting of kubelet that Slipway does not know to be harmless", remedy: removeIt}
}

// checkLabel refuses the labels that a worker may not set on itself. NodeRestriction refuses the whole update that contains one.
func checkLabel(_ *comparison, path []string, _ any) refusal {
	form, _ := syntax.Lookup("node-label-key")
	if fault := form.Check(path[len(path)-1]); fault != nil {
		return refusal{problem: "is a label that a node may not set on itself", remedy: removeIt}
	}
	return refusal{}
}

// checkTaint refuses taints of workers, which Talos cannot apply, and the taint that decides where ordinary pods run.
func checkTaint(c *comparison, path []string, _ any) refusal {
	if c.node.Role != cluster.ControlPlane {
		return refusal{
			problem: "is a taint of a worker, which Talos may not change, nor labels together with it",
			remedy:  remedyFor(path),
		}
	}
	switch path[len(path)-1] {
	case "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master":
		return refusal{
			problem: "decides whether ordinary pods run on control planes, and Slipway sets that",
			remedy:  "set kubernetes.allowSchedulingOnControlPlanes instead",
		}
	}
	return refusal{}
}

// checkSysctl refuses the kernel parameters that the configuration refuses in talos.sysctls, too.
func checkSysctl(c *comparison, path []string, value any) refusal {
	if c.cluster.BreaksNetwork(path[len(path)-1], fmt.Sprint(value)) {
		return refusal{problem: cluster.BrokenNetwork, remedy: removeIt}
	}
	return refusal{}
}

// checkFile refuses a second text for a file that Slipway writes.
func checkFile(c *comparison, _ []string, value any) refusal {
	files, _ := at(at(c.rendered, "machine"), "files").([]any)
	for _, file := range files {
		if cleanPath(at(file, "path")) == cleanPath(at(value, "path")) {
			return refusal{problem: "writes a file that Slipway writes", remedy: removeIt}
		}
	}
	return refusal{}
}

// talosDirectories are the directories that hold what Talos gives to kubelet and to the control plane's components.
var talosDirectories = []string{"/etc/kubernetes", "/system", "/var/lib/kubelet"}

// checkMount refuses a mount of kubelet over a directory of Talos's. What is below is allowed: CSI plug-ins mount there.
func checkMount(_ *comparison, _ []string, value any) refusal {
	return checkDestination(cleanPath(at(value, "destination")))
}

// checkVolumeMount refuses a mount of a component of the control plane over a directory of Talos's.
func checkVolumeMount(_ *comparison, _ []string, value any) refusal {
	destination := cleanPath(at(value, "mountPath"))
	if strings.HasPrefix(destination, "/system/") {
		destination = "/system"
	}
	return checkDestination(destination)
}

func checkDestination(destination string) refusal {
	for _, directory := range talosDirectories {
		if destination == directory || strings.HasPrefix(directory, strings.TrimSuffix(destination, "/")+"/") {
			return refusal{problem: "mounts over a directory that Talos fills", remedy: "mount at a directory of its own"}
		}
	}
	return refusal{}
}

// kernelArguments are the arguments of the kernel that Talos reads its configuration, platform and network from.
var kernelArguments = regexp.MustCompile(`^-?(talos\.|siderolink\.|(ip|bond|bridge|vlan|nameserver|init|rdinit|root)(=|$))`)

func checkKernelArgument(_ *comparison, _ []string, value any) refusal {
	text, _ := value.(string)
	for _, argument := range strings.Fields(text) {
		if kernelArguments.MatchString(argument) {
			return refusal{problem: "has an argument that Talos takes its configuration, platform or network from", remedy: removeIt}
		}
	}
	return refusal{}
}

// checkAdmission allows further plug-ins. The one that Talos configures, PodSecurity, stays as it is.
func checkAdmission(c *comparison, _ []string, value any) refusal {
	plugins, _ := at(at(at(c.base, "cluster"), "apiServer"), "admissionControl").([]any)
	for _, plugin := range plugins {
		if at(plugin, "name") == at(value, "name") {
			return refusal{problem: "configures a plug-in that Talos configures", remedy: "label the namespace that needs it instead"}
		}
	}
	return refusal{}
}

// checkMirror refuses a document for a registry whose mirrors the stack declares, and endpoints that checkMirrorEndpoint refuses.
func checkMirror(c *comparison, path []string, value any) refusal {
	_, registry, _ := strings.Cut(path[0], " ")
	if _, declared := c.cluster.Talos.RegistryMirrors[registry]; declared {
		return refusal{problem: "is the second declaration of this registry's mirrors", remedy: "set talos.registryMirrors instead"}
	}
	endpoints, _ := at(value, "endpoints").([]any)
	for _, endpoint := range endpoints {
		if refused := checkMirrorEndpoint(c, path, at(endpoint, "url")); refused.problem != "" {
			return refused
		}
	}
	return refusal{}
}

// checkMirrorEndpoint refuses a mirror at an address of the cluster: the machines pull images before the cluster exists.
func checkMirrorEndpoint(c *comparison, _ []string, value any) refusal {
	text, _ := value.(string)
	endpoint, err := url.Parse(text)
	if err != nil {
		return refusal{problem: "has a mirror that is no URL", remedy: "write it as https://HOST"}
	}
	address, err := netip.ParseAddr(endpoint.Hostname())
	if err != nil {
		return refusal{}
	}
	if part := c.cluster.OwnAddress(address); part != "" {
		return refusal{
			problem: "has a mirror whose address is " + part + ", which exists only once the cluster does",
			remedy:  "use a server outside the cluster",
		}
	}
	return refusal{}
}

// checkExtension refuses the configuration of an extension that Slipway configures. With the extension it is rendered already.
func checkExtension(_ *comparison, path []string, _ any) refusal {
	_, name, _ := strings.Cut(path[0], " ")
	if strings.HasSuffix(cluster.LLDPDExtension, "/"+name) {
		return refusal{problem: "is the configuration of an extension that Slipway configures", remedy: "set talos.lldpd.config instead"}
	}
	return refusal{}
}

// checkFirewall refuses to close all ports by default. Whether the rules beside it open what Slipway, etcd, Kubernetes and Cilium
// need cannot be told: the addresses that Slipway runs from are unknown.
func checkFirewall(_ *comparison, _ []string, value any) refusal {
	if at(value, "ingress") == "block" {
		return refusal{
			problem: "closes the ports that Slipway, etcd, Kubernetes and Cilium need",
			remedy:  "set ingress: accept, and filter with Cilium's policies",
		}
	}
	return refusal{}
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
func checkFirewallRule(_ *comparison, _ []string, value any) refusal {
	selector := at(value, "portSelector")
	protocol, _ := at(selector, "protocol").(string)
	ports, _ := at(selector, "ports").([]any)
	for _, port := range ports {
		first, last, found := strings.Cut(fmt.Sprint(port), "-")
		if !found {
			last = first
		}
		low, errLow := strconv.Atoi(first)
		high, errHigh := strconv.Atoi(last)
		if errLow != nil || errHigh != nil {
			continue // Talos refuses it
		}
		for _, needed := range neededPorts[protocol] {
			if low <= needed && needed <= high {
				return refusal{
					problem: "closes a port that Slipway, etcd, Kubernetes or Cilium needs to all addresses that it does not name",
					remedy:  "leave out port " + strconv.Itoa(needed),
				}
			}
		}
	}
	return refusal{}
}

// physicalLink is how Linux names the network devices of a VM. The names of VLANs on them have a dot.
var physicalLink = regexp.MustCompile(`^(en|eth)[a-z0-9]*$`)

// checkLink allows further links that leave the machine's one network device alone, and whose addresses and routes are in none of
// the cluster's networks.
func checkLink(c *comparison, path []string, value any) refusal {
	_, name, _ := strings.Cut(path[0], " ")
	if physicalLink.MatchString(name) {
		return refusal{
			problem: "configures the machine's network device, and Slipway configures it",
			remedy:  "set network.nodeCIDR, network.gateway and nodePools[].nodes[].address instead, and give a further link another name",
		}
	}
	links, _ := at(value, "links").([]any)
	for _, link := range links {
		if text, _ := link.(string); physicalLink.MatchString(text) {
			return refusal{problem: "takes the machine's network device, which holds the node's address", remedy: removeIt}
		}
	}
	addresses, _ := at(value, "addresses").([]any)
	for _, address := range addresses {
		text, _ := at(address, "address").(string)
		if network, err := netip.ParsePrefix(text); err != nil || c.overlaps(network) {
			return refusal{problem: "has an address in a network of the cluster", remedy: "use an address outside of all networks in network"}
		}
	}
	routes, _ := at(value, "routes").([]any)
	for _, route := range routes {
		text, _ := at(route, "destination").(string)
		if network, err := netip.ParsePrefix(text); err != nil || network.Bits() == 0 {
			return refusal{problem: "has a default route, and Slipway sets that", remedy: "set network.gateway instead"}
		} else if c.overlaps(network) {
			return refusal{problem: "has a route to a network of the cluster", remedy: "remove the route"}
		}
	}
	return refusal{}
}

// overlaps tells whether a network shares addresses with one of the cluster's.
func (c *comparison) overlaps(network netip.Prefix) bool {
	n := c.cluster.Network
	networks := slices.Concat([]netip.Prefix{n.NodeCIDR}, n.PodCIDRs(), n.ServiceCIDRs())
	if n.IPv6 != nil {
		networks = append(networks, n.IPv6.NodeCIDR)
	}
	for _, other := range networks {
		if other.IsValid() && other.Overlaps(network) {
			return true
		}
	}
	return false
}

// cleanPath is a file's path in its shortest form.
func cleanPath(value any) string {
	text, _ := value.(string)
	return path.Clean("/" + text)
}
