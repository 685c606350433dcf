package machineconfig

import (
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/slipway-platform/slipway/cluster"
)

// allowance is a part of the configuration that patches may set. What no allowance names, no patch may set.
type allowance struct {
	// part is the dotted path of the part. It includes everything below. "*" is any one key; in the name of a document, it is any
	// name.
	part string
	// defaults tells that a patch may also change and remove what Talos generates there. Without it, a patch may only add: keys to
	// mappings, and items to lists.
	defaults bool
	// check returns why one addition is not allowed, and "" for one that is; nil means that every addition is. path is where the
	// value is added: the part, or below it.
	check func(c *comparison, path []string, value any) refusal
}

// refusal is why a patch may not do something. The zero value refuses nothing.
type refusal struct{ problem, remedy string }

// allowances are all parts that patches may set, because no part of Slipway relies on them. The first that covers a part decides.
var allowances = []allowance{
	{part: "debug", defaults: true},

	{part: "machine.baseRuntimeSpecOverrides"},
	{part: "machine.certSANs"},
	{part: "machine.env"},
	{part: "machine.features.diskQuotaSupport", defaults: true},
	{part: "machine.features.hostDNS.resolveMemberNames"},
	{part: "machine.features.kubernetesTalosAPIAccess"},
	{part: "machine.files", check: checkFile},
	{part: "machine.install.extraKernelArgs", check: checkKernelArgument},
	{part: "machine.install.grubUseUKICmdline", defaults: true},
	{part: "machine.kernel"},
	{part: "machine.kubelet.credentialProviderConfig"},
	{part: "machine.kubelet.disableManifestsDirectory", defaults: true},
	{part: "machine.kubelet.extraArgs.*", check: checkKubelet},
	{part: "machine.kubelet.extraConfig.*", check: checkKubelet},
	{part: "machine.kubelet.extraMounts", check: checkMount},
	{part: "machine.logging"},
	{part: "machine.network.disableSearchDomain"},
	{part: "machine.network.extraHostEntries"},
	{part: "machine.network.searchDomains"},
	{part: "machine.nodeAnnotations"},
	{part: "machine.nodeLabels", defaults: true},
	{part: "machine.nodeTaints.*", check: checkTaint},
	{part: "machine.pods"},
	{part: "machine.registries.mirrors.*.endpoints", check: checkMirrorEndpoint},
	{part: "machine.registries"},
	{part: "machine.seccompProfiles"},
	{part: "machine.sysctls.*", check: checkSysctl},
	{part: "machine.sysfs"},
	{part: "machine.time.bootTimeout"},
	{part: "machine.udev"},

	{part: "cluster.adminKubeconfig"},
	{part: "cluster.apiServer.admissionControl", check: checkAdmission},
	{part: "cluster.apiServer.auditPolicy", defaults: true},
	{part: "cluster.apiServer.authorizationConfig"},
	{part: "cluster.apiServer.certSANs"},
	{part: "cluster.apiServer.env"},
	{part: "cluster.apiServer.extraArgs.*", check: checkFlag(apiServerFlags)},
	{part: "cluster.apiServer.extraVolumes", check: checkVolumeMount},
	{part: "cluster.apiServer.resources"},
	{part: "cluster.controllerManager.env"},
	{part: "cluster.controllerManager.extraArgs.*", check: checkFlag(controllerManagerFlags)},
	{part: "cluster.controllerManager.extraVolumes", check: checkVolumeMount},
	{part: "cluster.controllerManager.resources"},
	{part: "cluster.etcd.extraArgs.*", check: checkFlag(etcdFlags)},
	{part: "cluster.extraManifestHeaders"},
	{part: "cluster.extraManifests"},
	{part: "cluster.inlineManifests"},
	{part: "cluster.scheduler.config"},
	{part: "cluster.scheduler.env"},
	{part: "cluster.scheduler.extraArgs.*", check: checkFlag(schedulerFlags)},
	{part: "cluster.scheduler.extraVolumes", check: checkVolumeMount},
	{part: "cluster.scheduler.resources"},

	{part: "BondConfig *", check: checkLink},
	{part: "BridgeConfig *", check: checkLink},
	{part: "DummyLinkConfig *", check: checkLink},
	{part: "EthernetConfig *"},
	{part: "EventSinkConfig"},
	{part: "ExistingVolumeConfig *", check: checkExistingVolume},
	{part: "ExtensionServiceConfig *", check: checkExtension},
	{part: "KmsgLogConfig *"},
	{part: "LinkConfig *", check: checkLink},
	{part: "NetworkDefaultActionConfig", check: checkFirewall},
	{part: "NetworkRuleConfig *", check: checkFirewallRule},
	{part: "OOMConfig"},
	{part: "PCIDriverRebindConfig *"},
	{part: "RawVolumeConfig *", check: checkVolume},
	{part: "RegistryAuthConfig *"},
	{part: "RegistryMirrorConfig *", check: checkMirror},
	{part: "RegistryTLSConfig *"},
	{part: "StaticHostConfig *"},
	{part: "SwapVolumeConfig *", check: checkVolume},
	{part: "TrustedRootsConfig *"},
	{part: "UserVolumeConfig *", check: checkVolume},
	{part: "VLANConfig *", check: checkLink},
	{part: "VolumeConfig EPHEMERAL.provisioning.maxSize"},
	{part: "VolumeConfig EPHEMERAL.provisioning.minSize"},
	{part: "WatchdogTimerConfig"},
	{part: "WireguardConfig *", check: checkLink},
	{part: "ZswapConfig"},
}

// declarations are the keys of the stack that declare what patches may not set. The longest part that holds a path decides.
var declarations = []struct{ part, key string }{
	{"HostnameConfig", "nodePools[].nodes[].name"},
	{"HCloudVIPConfig *", "network.vip"},
	{"Layer2VIPConfig *", "network.vip"},
	{"ResolverConfig", "network.nameservers"},
	{"TimeSyncConfig", "network.ntp"},
	{"UserVolumeConfig *", "nodePools[].dataDisks"},
	{"UserVolumeConfig *.encryption", "talos.diskEncryption"},
	{"VolumeConfig *.encryption", "talos.diskEncryption"},
	{"ExtensionServiceConfig lldpd", "talos.lldpd.config"},
	{"cluster.allowSchedulingOnControlPlanes", "kubernetes.allowSchedulingOnControlPlanes"},
	{"cluster.allowSchedulingOnMasters", "kubernetes.allowSchedulingOnControlPlanes"},
	{"cluster.apiServer.image", "kubernetes.version"},
	{"cluster.clusterName", "cluster.name"},
	{"cluster.controlPlane.endpoint", "network.vip"},
	{"cluster.controllerManager.image", "kubernetes.version"},
	{"cluster.coreDNS", "coreDNS"},
	{"cluster.etcd.advertisedSubnets", "network.nodeCIDR"},
	{"cluster.etcd.listenSubnets", "network.nodeCIDR"},
	{"cluster.etcd.subnet", "network.nodeCIDR"},
	{"cluster.network.podSubnets", "network.podCIDR"},
	{"cluster.network.serviceSubnets", "network.serviceCIDR"},
	{"cluster.proxy.image", "kubernetes.version"},
	{"cluster.scheduler.image", "kubernetes.version"},
	{"machine.disks", "nodePools[].dataDisks"},
	{"machine.install.disk", "talos.installDisk"},
	{"machine.install.diskSelector", "talos.installDisk"},
	{"machine.install.extensions", "talos.extensions"},
	{"machine.install.image", "talos.version and talos.extensions"},
	{"machine.kubelet.clusterDNS", "network.serviceCIDR"},
	{"machine.kubelet.extraArgs", "talos.kubelet.extraArgs"},
	{"machine.kubelet.extraConfig.maxPods", "talos.kubelet.maxPods"},
	{"machine.kubelet.image", "kubernetes.version"},
	{"machine.kubelet.nodeIP", "network.nodeCIDR"},
	{"machine.network.hostname", "nodePools[].nodes[].name"},
	{"machine.network.interfaces", "network.nodeCIDR, network.gateway, network.vip and nodePools[].nodes[].address"},
	{"machine.network.nameservers", "network.nameservers"},
	{"machine.nodeLabels", "nodePools[].labels"},
	{"machine.nodeTaints", "nodePools[].taints"},
	{"machine.registries.mirrors", "talos.registryMirrors"},
	{"machine.sysctls", "talos.sysctls"},
	{"machine.systemDiskEncryption", "talos.diskEncryption"},
	{"machine.time", "network.ntp"},
	{"machine.type", "nodePools[].role"},
}

// difference is one part that a patch set although it may not.
type difference struct {
	part string
	refusal
}

// comparison compares a configuration after a patch with the one before all patches.
type comparison struct {
	cluster  model
	node     cluster.Machine
	rendered map[string]any // what Slipway renders itself, as documents does
	base     map[string]any // the whole configuration without the user's patches
	found    []difference
}

// compare returns what a patch changed and may not. before and after are the configuration before and after the patch. A part that
// is as in base is no difference: only the patch that changed it is to blame.
func (c *comparison) compare(before, after map[string]any) []difference {
	c.found = nil
	c.walk(nil, c.base, before, after)
	return c.found
}

func (c *comparison) walk(path []string, base, before, after any) {
	if same(base, after) || same(before, after) {
		return
	}
	if same(after, nil) {
		after = nil
	}
	allowed, covered := allowanceFor(path)
	if covered && allowed.wholeDocument() && c.renders(path[:1]) {
		covered = false // a document that Slipway makes is Slipway's, unless an allowance names a part of it
	}
	if _, mapping := after.(map[string]any); mapping && c.descends(path, allowed, covered, base) {
		c.walkMapping(path, base, before, after)
		return
	}
	if after == nil && !same(base, nil) {
		c.walkRemoved(path, base, before)
		return
	}
	if !covered || allowed.defaults && c.renders(path) {
		c.refuse(path, verb(base, after))
		return
	}
	switch {
	case allowed.defaults:
	case same(base, nil):
		c.added(path, allowed, before, after)
	default:
		c.grown(path, allowed, base, before, after)
	}
}

// descends tells whether the keys of a mapping are compared one by one. A mapping as a whole is judged where a check wants to see
// the whole, and where nothing below can be allowed.
func (c *comparison) descends(path []string, allowed allowance, covered bool, base any) bool {
	switch {
	case len(path) == 0:
		return true
	case covered && allowed.check != nil && same(base, nil):
		return false
	case covered:
		return true
	}
	return !same(base, nil) || mayHoldAllowed(path)
}

func (c *comparison) walkMapping(path []string, base, before, after any) {
	keys := map[string]bool{}
	for _, tree := range []any{base, after} {
		if tree, ok := tree.(map[string]any); ok {
			for key := range tree {
				keys[key] = true
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if len(path) == 1 && key == present {
			continue
		}
		c.walk(append(slices.Clone(path), key), at(base, key), at(before, key), at(after, key))
	}
}

// walkRemoved reports a removed part once, instead of each of its values.
func (c *comparison) walkRemoved(path []string, base, before any) {
	tree, mapping := base.(map[string]any)
	if !mapping {
		if allowed, covered := allowanceFor(path); !covered || !allowed.defaults || c.renders(path) {
			c.refuse(path, "is removed")
		}
		return
	}
	found := c.found
	c.found = nil
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		c.walk(append(slices.Clone(path), key), tree[key], at(before, key), nil)
	}
	removed := c.found
	c.found = found
	switch len(removed) {
	case 0:
	case 1:
		c.found = append(c.found, removed...)
	default:
		c.refuse(path, "is removed")
	}
}

// added checks a value where there was none. The items of a list are checked one by one. What was refused before the patch already
// is not refused again.
func (c *comparison) added(path []string, allowed allowance, before, value any) {
	if allowed.check == nil {
		return
	}
	earlier, _ := before.([]any)
	items, list := value.([]any)
	if !list {
		items, earlier = []any{value}, []any{before}
	}
	known := map[refusal]bool{}
	for _, item := range earlier {
		if item != nil {
			known[allowed.check(c, path, item)] = true
		}
	}
	for _, item := range items {
		if refused := allowed.check(c, path, item); refused.problem != "" && !known[refused] {
			c.refuseWith(path, refused)
			known[refused] = true
		}
	}
}

// grown accepts a list that has further items, and nothing else.
func (c *comparison) grown(path []string, allowed allowance, base, before, after any) {
	earlier, complete := further(base, before)
	items, stillComplete := further(base, after)
	if !stillComplete {
		if complete {
			c.refuse(path, "is changed")
		}
		return
	}
	c.added(path, allowed, earlier, items)
}

// further returns the items of a list that are not in base. complete tells whether all items of base are in the list, in their order.
func further(base, list any) (items []any, complete bool) {
	rest, ok := base.([]any)
	if !ok {
		return nil, same(base, list)
	}
	all, ok := list.([]any)
	if !ok {
		return nil, false
	}
	for _, item := range all {
		if len(rest) > 0 && same(rest[0], item) {
			rest = rest[1:]
			continue
		}
		items = append(items, item)
	}
	return items, len(rest) == 0
}

// verb says what became of a part.
func verb(base, after any) string {
	switch {
	case same(after, nil):
		return "is removed"
	case same(base, nil):
		return "is added"
	}
	return "is changed"
}

// refuse reports a part with the usual reason and remedy.
func (c *comparison) refuse(path []string, verb string) {
	reason := ", but Slipway relies on it as Talos generates it"
	switch {
	case c.renders(path), remedyFor(path) != removeIt:
		reason = ", but Slipway sets it"
	case verb == "is added":
		reason = ", but Slipway relies on a configuration without it"
	}
	c.refuseWith(path, refusal{problem: verb + reason, remedy: remedyFor(path)})
}

func (c *comparison) refuseWith(path []string, refused refusal) {
	if refused.remedy == "" {
		refused.remedy = remedyFor(path)
	}
	c.found = append(c.found, difference{part: strings.Join(path, "."), refusal: refused})
}

// renders tells whether Slipway itself renders the part, or something in it.
func (c *comparison) renders(path []string) bool {
	var tree any = c.rendered
	for _, key := range path {
		if tree = at(tree, key); tree == nil {
			return false
		}
	}
	return true
}

// remedyFor names the key of the stack that declares a part.
func remedyFor(path []string) string {
	key, length := "", 0
	for _, declared := range declarations {
		if pattern := segments(declared.part); len(pattern) > length && len(pattern) <= len(path) && matches(pattern, path) {
			key, length = declared.key, len(pattern)
		}
	}
	if key == "" {
		return removeIt
	}
	return "set " + key + " instead"
}

const removeIt = "remove it"

// allowanceFor returns the allowance that covers a part.
func allowanceFor(path []string) (allowance, bool) {
	for _, allowed := range allowances {
		if pattern := segments(allowed.part); len(pattern) <= len(path) && matches(pattern, path) {
			return allowed, true
		}
	}
	return allowance{}, false
}

// mayHoldAllowed tells whether an allowance covers something below a part.
func mayHoldAllowed(path []string) bool {
	for _, allowed := range allowances {
		if pattern := segments(allowed.part); len(pattern) > len(path) && matches(pattern[:len(path)], path) {
			return true
		}
	}
	return false
}

func segments(part string) []string { return strings.Split(part, ".") }

// matches compares the keys of a pattern with the first ones of a path.
func matches(pattern, path []string) bool {
	for i, want := range pattern {
		kind, anyName := strings.CutSuffix(want, " *")
		switch {
		case want == "*", want == path[i]:
		case anyName && strings.HasPrefix(path[i], kind+" "):
		default:
			return false
		}
	}
	return true
}

// wholeDocument tells whether the allowance covers a document other than the oldest one, whose parts begin in lower case.
func (a allowance) wholeDocument() bool {
	return len(segments(a.part)) == 1 && unicode.IsUpper(rune(a.part[0]))
}

// same compares two values. Null, an empty mapping and an empty list are all the same as nothing.
func same(a, b any) bool {
	return reflect.DeepEqual(substance(a), substance(b))
}

// substance removes nulls, empty mappings and empty lists from a value.
func substance(value any) any {
	switch value := value.(type) {
	case map[string]any:
		tree := map[string]any{}
		for key, child := range value {
			if child = substance(child); child != nil {
				tree[key] = child
			}
		}
		if len(tree) == 0 {
			return nil
		}
		return tree
	case []any:
		if len(value) == 0 {
			return nil
		}
		list := make([]any, len(value))
		for i, child := range value {
			list[i] = substance(child)
		}
		return list
	}
	return value
}

// present is the key of a value that normalised adds to each document: one that has nothing but a name counts, too.
const present = "(document)"

// normalised returns a tree of documents in the form in which it is compared. Kernel parameters get the names with dots: the kernel
// takes net/core/somaxconn for net.core.somaxconn.
func normalised(tree map[string]any) map[string]any {
	for key, doc := range tree {
		if doc, ok := doc.(map[string]any); ok && unicode.IsUpper(rune(key[0])) {
			doc[present] = true
		}
	}
	machine, _ := tree["machine"].(map[string]any)
	sysctls, _ := machine["sysctls"].(map[string]any)
	if len(sysctls) == 0 {
		return tree
	}
	parameters := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(sysctls)) {
		name := strings.ReplaceAll(key, "/", ".")
		if other, twice := parameters[name]; twice {
			parameters[name] = []any{other, sysctls[key]} // no longer what it was alone
		} else {
			parameters[name] = sysctls[key]
		}
	}
	machine["sysctls"] = parameters
	return tree
}

// cleanPath is a file's path in its shortest form.
func cleanPath(value any) string {
	text, _ := value.(string)
	return path.Clean("/" + text)
}
