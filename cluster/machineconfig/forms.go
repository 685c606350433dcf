package machineconfig

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/slipway-platform/slipway/cluster"
)

// talosForm is the form of a value that Talos takes as it is, and of which only the machine or a component finds out that it is wrong.
type talosForm struct {
	part   string // dotted path; * is any part of a key, and [] each item of a list
	takes  func(value string) bool
	says   string // what a value of another form is
	remedy string
}

const (
	notKnown  = "is no word that the component knows"
	notWhole  = "is no whole path"
	beginPath = "begin it with a /"
	isNoPod   = "is not that of a pod"
	onlyPods  = "write a pod of v1, and other objects in inlineManifests"
	probed    = "is not the port that Talos probes"
	noAmount  = "is no quantity of Kubernetes"
	amount    = "write one, such as 500m of cpu or 256Mi of memory"
)

var talosForms = []talosForm{
	{"machine.certSANs[]", isSubject, noSubject, subject},
	{"machine.files[].op", isOneOf("create", "append", "overwrite"), "is no operation that Talos knows", "write create, append or overwrite"},
	{"machine.files[].path", matches(`^/`), notWhole, beginPath},
	{"machine.kernel.modules[].name", matches(`^[\w-]+$`), "is no name of a kernel module",
		"write the name alone; parameters have a key of their own"},
	{"machine.kubelet.extraMounts[].destination", matches(`^/[^:]*$`), notWhole, beginPath},
	{"machine.kubelet.extraMounts[].source", matches(`^(/|\w+$)`), notWhole, beginPath}, // one word names a file system, such as tmpfs
	{"machine.logging.destinations[].endpoint", matches(`^(tcp|udp)://[^/\s]+:[0-9]{1,5}/?$`), "is no address with a port",
		"write it as tcp://10.0.0.5:6051 or udp://10.0.0.5:6051"},
	{"machine.network.extraHostEntries[].aliases[]", matches(`^[^\s:/@]+$`), "is no host name", "write a host name, such as git.example.com"},
	{"machine.network.extraHostEntries[].ip", isAddress, "is no IP address", "write one, such as 10.0.0.5"},
	{"machine.network.searchDomains[]", matches(`^[^\s:/@]+$`), "is no domain", "write one, such as example.com"},
	{"machine.pods[].kind", isOneOf("Pod"), isNoPod, onlyPods}, // the kubelet reads all of the list, with the control plane's, or none
	{"machine.registries.mirrors.*.endpoints[]", matches(`^https?://[^/\s]+(/\S*)?$`), "is no URL", "write it as https://mirror.example.com"},
	{"machine.sysctls.*", matches(`\S`), "is empty", "write a value, or remove the key"},
	{"machine.udev.rules[]", matches(`^\s*(#|[A-Z]\w*(\{[^}]*\})?\s*([=!+:-]?=)\s*[ei]?"[^"]*")`), "is no rule of udev",
		`write KEY=="VALUE" and KEY="VALUE", with commas between them`},
	{"cluster.extraManifests[]", matches(`^https?://[^/\s]\S+$`), "is no URL from which Talos can fetch",
		"write one that begins with https://"},
	{"cluster.inlineManifests[].contents", isManifest, "is no manifest: each document needs apiVersion, kind and metadata.name",
		"correct it; nothing renders templates here"},
	{"cluster.apiServer.certSANs[]", isSubject, noSubject, subject},
	// No component has a folder of its own to begin a path in.
	{"cluster.*.extraArgs.*-file", matches(`^(/|$)`), notWhole, beginPath},
	{"cluster.apiServer.extraArgs.bind-address", isOneOf("0.0.0.0", "::"), "leaves other addresses of the node without an API server",
		removeIt},
	{"cluster.controllerManager.extraArgs.secure-port", isOneOf("10257"), probed, removeIt},
	{"cluster.scheduler.extraArgs.secure-port", isOneOf("10259"), probed, removeIt},
	{"cluster.etcd.extraArgs.force-new-cluster", isOneOf("false"), "makes a cluster of one member of each", removeIt},
	{"cluster.*.extraVolumes[].hostPath", matches(`^/`), notWhole, beginPath},
	{"cluster.*.extraVolumes[].mountPath", matches(`^/[^:]*$`), notWhole, beginPath + ", and leave out colons"},
	{"cluster.*.resources.limits.*", isQuantity, noAmount, amount},
	{"cluster.*.resources.requests.*", isQuantity, noAmount, amount},
	{"WatchdogTimerConfig.device", matches(`^/dev/watchdog`), "is no watchdog", "write /dev/watchdog0"},

	// What asks others for authorization: k8s.io/apiserver, pkg/apis/apiserver/validation.
	{authorizers + "name", matches(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`), "is no name of an authorizer",
		"write lower-case letters, digits, - and ."},
	{authorizers + "webhook.connectionInfo.type", isOneOf("InClusterConfig", "KubeConfigFile"), notKnown,
		"write InClusterConfig or KubeConfigFile"},
	{authorizers + "webhook.failurePolicy", isOneOf("NoOpinion", "Deny"), notKnown, "write NoOpinion or Deny"},
	{authorizers + "webhook.subjectAccessReviewVersion", isOneOf("v1", "v1beta1"), notKnown, "write v1"},
	{authorizers + "webhook.timeout", lasts(1, 30*time.Second), "is no duration of at most 30s", "write one, such as 3s"},

	// The policy of audits: k8s.io/apiserver, pkg/apis/audit.
	{audit + "apiVersion", isOneOf("audit.k8s.io/v1"), "is no version that the API server reads", "write audit.k8s.io/v1"},
	{audit + "kind", isOneOf("Policy"), "is no policy", "write Policy"},
	{audit + "omitStages[]", isStage, notKnown, stages},
	{audit + "rules[].level", isOneOf("None", "Metadata", "Request", "RequestResponse"), notKnown,
		"write None, Metadata, Request or RequestResponse"},
	{audit + "rules[].nonResourceURLs[]", matches(`^(/[^*]*\*?|\*)$`), "is no path", "begin it with a /; a * may only end it"},
	{audit + "rules[].omitStages[]", isStage, notKnown, stages},
	{audit + "rules[].resources[].group", matches(`^[^/]*$`), "has a version", "write the group alone"},

	// What the kubelet reads when it starts: k8s.io/kubernetes, pkg/kubelet. An empty text stands for its default.
	{kubelet + "allowedUnsafeSysctls[]", matches(`^(kernel[./](sem\*?$|(shm|msg)\S*$)|(fs[./]mqueue|net)[./]\S+$)`),
		"is no parameter that a pod has for itself", "set it in talos.sysctls, for the whole machine"}, // k8s.io/component-helpers
	{kubelet + "cgroupDriver", isOneOf("", "cgroupfs", "systemd"), notKnown, "write cgroupfs or systemd"},
	{kubelet + "containerLogMaxSize", orEmpty(isAmount), noAmount, "write one, such as 10Mi"},
	{kubelet + "containerLogMonitorInterval", lasts(3*time.Second, math.MaxInt64), "is no duration of at least 3s", "write one, such as 10s"},
	{kubelet + "cpuCFSQuotaPeriod", lasts(time.Millisecond, time.Second), "is no duration from 1ms to 1s", "write one, such as 100ms"},
	{kubelet + "crashLoopBackOff.maxContainerRestartPeriod", lasts(time.Second, 5*time.Minute), "is no duration from 1s to 5m",
		"write one, such as 1m"},
	{kubelet + "configMapAndSecretChangeDetectionStrategy", isOneOf("", "Get", "Cache", "Watch"), notKnown, "write Get, Cache or Watch"},
	{kubelet + "enforceNodeAllocatable[]", isOneOf("none", "pods", "kube-reserved", "kube-reserved-compressible", "system-reserved",
		"system-reserved-compressible"), notKnown, "write none, pods, kube-reserved or system-reserved"},
	{kubelet + "evictionHard.*", isThreshold, noThreshold, threshold},
	{kubelet + "evictionMinimumReclaim.*", isThreshold, noThreshold, threshold},
	{kubelet + "evictionSoft.*", isThreshold, noThreshold, threshold},
	{kubelet + "evictionSoftGracePeriod.*", lasts(0, math.MaxInt64), "is no duration", "write one, such as 1m"},
	{kubelet + "kubeReserved.*", isQuantity, noAmount, amount},
	{kubelet + "logging.format", isOneOf("", "json", "text"), notKnown, "write json or text"},
	{kubelet + "imagePullCredentialsVerificationPolicy", isOneOf("", "AlwaysVerify", "NeverVerify", "NeverVerifyAllowlistedImages",
		"NeverVerifyPreloadedImages"), notKnown, "write AlwaysVerify, NeverVerify, NeverVerifyAllowlistedImages or NeverVerifyPreloadedImages"},
	{kubelet + "maxParallelImagePulls", isFrom(1, math.MaxInt32), "is not at least 1", "write a number, such as 5"},
	{kubelet + "memorySwap.swapBehavior", isOneOf("", "NoSwap", "LimitedSwap"), notKnown, "write NoSwap or LimitedSwap"},
	{kubelet + "memoryThrottlingFactor", isFrom(0.000001, 1), "is not above 0 and at most 1", "write a number, such as 0.9"},
	{kubelet + "podLogsDir", orEmpty(func(value string) bool { return cleanPath(value) == value }), notWhole,
		"begin it with a /, and end it without"},
	{kubelet + "qosReserved.*", matches(`^([0-9]{1,2}|100)%$`), "is no share", "write one, such as 50%"},
	{kubelet + "reservedSystemCPUs", matches(`^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$`), "is no list of CPUs", "write one, such as 0-1,4"},
	{kubelet + "runOnce", isOneOf("false"), "is a mode that the kubelet does not have any more", removeIt},
	{kubelet + "shutdownGracePeriod", isGrace, noGrace, "write one, such as 30s"},
	{kubelet + "shutdownGracePeriodCriticalPods", isGrace, noGrace, "write one, such as 10s"},
	{kubelet + "systemReserved.*", isQuantity, noAmount, amount},
	{kubelet + "userNamespaces.idsPerPod", func(value string) bool {
		number, err := strconv.ParseUint(value, 10, 32)
		return err == nil && number > 0 && number%65536 == 0
	}, "is no multiple of 65536", "write one, such as 65536"},
	{kubelet + "tracing.samplingRatePerMillion", isFrom(0, 1000000), "is not from 0 to 1000000", "write a number, such as 100"},

	// The scheduler's configuration: k8s.io/kubernetes, pkg/scheduler/apis/config/validation.
	{scheduler + "parallelism", isFrom(1, math.MaxInt32), "is not at least 1", "write a number, such as 16"},
	{scheduler + "percentageOfNodesToScore", isPercentage, noPercentage, "write a number, such as 50"},
	{scheduler + "profiles[].percentageOfNodesToScore", isPercentage, noPercentage, "write a number, such as 50"},
	{scheduler + "profiles[].pluginConfig[].args.scoringStrategy.type",
		isOneOf("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"), notKnown,
		"write LeastAllocated, MostAllocated or RequestedToCapacityRatio"},
	{scheduler + "podInitialBackoffSeconds", isFrom(1, math.MaxInt32), "is not at least 1", "write a number, such as 1"},

	// Configurations of admission plugins, and Pod Security Admission: k8s.io/apiserver, k8s.io/pod-security-admission.
	{admission + "apiVersion", func(value string) bool { // some plugins read it from nowhere
		return !matches(admissionGroups)(value) || matches(admissionGroups+`v1((alpha|beta)1)?$`)(value)
	}, "is no version that the API server reads", "write that of the plugin's documentation"},
	{admission + "limits[].burst", isFrom(1, math.MaxInt32), "is not at least 1", "write a number, such as 100"},
	{admission + "limits[].qps", isFrom(1, math.MaxInt32), "is not at least 1", "write a number, such as 50"},
	{admission + "limits[].type", isOneOf("Server", "Namespace", "User", "SourceAndObject"), notKnown,
		"write Server, Namespace, User or SourceAndObject"},
	{podSecurity + "audit", isLevel, notKnown, levels},
	{podSecurity + "enforce", isLevel, notKnown, levels},
	{podSecurity + "warn", isLevel, notKnown, levels},
	{podSecurity + "*-version", matches(`^(latest|v1\.[0-9]+)$`), "is no version of the standards", "write latest, or one such as v1.36"},
}

const (
	audit       = "cluster.apiServer.auditPolicy."
	authorizers = "cluster.apiServer.authorizationConfig[]."
	kubelet     = "machine.kubelet.extraConfig."
	admission   = "cluster.apiServer.admissionControl[].configuration."

	admissionGroups = `^((pod-security\.admission|apiserver)\.config|` +
		`(eventratelimit|podtolerationrestriction|resourcequota)\.admission)\.k8s\.io/`

	podSecurity = admission + "defaults."
	scheduler   = "cluster.scheduler.config."

	stages      = "write RequestReceived, ResponseStarted, ResponseComplete or Panic"
	levels      = "write privileged, baseline or restricted"
	noThreshold = "is neither a quantity nor a share"
	threshold   = "write one, such as 500Mi or 10%"

	noSubject = "has letters that no certificate takes"
	subject   = "write it in ASCII, such as xn--bcher-kva.example"

	noGrace      = "is neither 0s nor a duration of at least 1s"
	noPercentage = "is not from 0 to 100"
)

var (
	isStage = isOneOf("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")
	isLevel = isOneOf("privileged", "baseline", "restricted")

	isPercentage = isFrom(0, 100)
)

// isFrom returns a function that tells whether a text is a number within two others.
func isFrom(least, most float64) func(string) bool {
	return func(value string) bool {
		number, err := strconv.ParseFloat(value, 64)
		return err == nil && number >= least && number <= most
	}
}

func orEmpty(is func(string) bool) func(string) bool {
	return func(value string) bool { return value == "" || is(value) }
}

func isGrace(value string) bool {
	return lasts(0, 0)(value) || lasts(time.Second, math.MaxInt64)(value)
}

// formKeys are the keys that a mapping may have of which Talos knows none: it drops what it does not know, or renders no configuration.
var formKeys = map[string][]string{
	audit + "rules[]": {
		"level", "namespaces", "nonResourceURLs", "omitManagedFields", "omitStages", "resources", "userGroups", "users", "verbs",
	},
	audit + "rules[].resources[]": {"group", "resourceNames", "resources"},
	admission + "defaults":        {"audit", "audit-version", "enforce", "enforce-version", "warn", "warn-version"},
	admission + "exemptions":      {"namespaces", "runtimeClasses", "usernames"},
	authorizers + "webhook": {
		"authorizedTTL", "cacheAuthorizedRequests", "cacheUnauthorizedRequests", "connectionInfo", "failurePolicy", "matchConditions",
		"matchConditionSubjectAccessReviewVersion", "subjectAccessReviewVersion", "timeout", "unauthorizedTTL",
	},
	kubelet + "cpuManagerPolicyOptions": { // pkg/kubelet/cm/cpumanager
		"align-by-socket", "distribute-cpus-across-cores", "distribute-cpus-across-numa", "full-pcpus-only",
		"prefer-align-cpus-by-uncorecache", "strict-cpu-reservation",
	},
	kubelet + "topologyManagerPolicyOptions": {"max-allowable-numa-nodes", "prefer-closest-numa-nodes"},
	kubelet + "kubeReserved":                 reservable, kubelet + "systemReserved": reservable, kubelet + "qosReserved": {"memory"},
	kubelet + "evictionHard": signals, kubelet + "evictionMinimumReclaim": signals, kubelet + "evictionSoft": signals,
	kubelet + "evictionSoftGracePeriod": signals,
}

// The forms of a registry: as the reference of an image has it, and as the address of a mirror, whose host may have no domain.
const (
	imageRegistry    = "registry"
	registryEndpoint = "registry-endpoint"
)

// keyForms are the forms of keys, as the stack file's own keys have them.
var keyForms = map[string]string{
	"machine.registries.config": registryEndpoint, "machine.registries.mirrors": imageRegistry, "machine.sysctls": "sysctl",
}

// reservable are the resources that the kubelet can reserve.
var reservable = []string{"cpu", "ephemeral-storage", "memory", "pid"}

// signals are the names of the kubelet's thresholds.
var signals = []string{
	"allocatableMemory.available", "containerfs.available", "containerfs.inodesFree", "imagefs.available", "imagefs.inodesFree",
	"memory.available", "nodefs.available", "nodefs.inodesFree", "pid.available",
}

func matches(pattern string) func(string) bool { return regexp.MustCompile(pattern).MatchString }

func isOneOf(words ...string) func(string) bool {
	return func(value string) bool { return slices.Contains(words, value) }
}

// isSubject tells whether a certificate can be made out to a text: marshalSANs of crypto/x509. Talos looks no further, so that a URL makes
// a useless name, and no broken certificate.
var isSubject = matches(`^[\x00-\x7f]+$`)

func isAddress(value string) bool { _, err := netip.ParseAddr(value); return err == nil }

// isQuantity tells whether a text is an amount of at least 0.
func isQuantity(value string) bool {
	quantity, err := resource.ParseQuantity(value)
	return err == nil && quantity.Sign() >= 0
}

func isAmount(value string) bool { _, err := resource.ParseQuantity(value); return err == nil }

// isThreshold tells whether a text is a quantity, or a share of at most all.
func isThreshold(value string) bool {
	if share, is := strings.CutSuffix(value, "%"); is {
		number, err := strconv.ParseFloat(share, 64)
		return err == nil && number >= 0 && number <= 100
	}
	return isQuantity(value)
}

// isManifest tells whether a text has objects of Kubernetes, and nothing else.
func isManifest(text string) bool {
	documents, err := yamlDocuments(text)
	found := false
	for _, document := range documents {
		if document == nil {
			continue
		}
		found = true
		kind, _ := at(document, "kind").(string)
		version, _ := at(document, "apiVersion").(string)
		name, _ := at(document, "metadata", "name").(string)
		if kind == "" || version == "" || name == "" && !strings.HasSuffix(kind, "List") {
			return false
		}
	}
	return err == nil && found
}

// checkForms refuses values of another form, and keys that nobody reads. Slipway's own have it.
func (c *comparison) checkForms() {
	for _, form := range talosForms {
		own := map[string]bool{} // such as the large manifests of Cilium
		eachAt(c.base, nil, form.part, nil, func(_ []string, value any) { own[fmt.Sprint(value)] = true })
		eachAt(c.after, c.base, form.part, nil, func(path []string, value any) {
			if text := fmt.Sprint(value); !own[text] && !form.takes(text) {
				c.add(path, form.says, form.remedy)
			}
		})
	}
	for _, part := range slices.Sorted(maps.Keys(formKeys)) {
		eachAt(c.after, c.base, part, nil, func(path []string, value any) {
			mapping, _ := value.(map[string]any)
			for _, key := range slices.Sorted(maps.Keys(mapping)) {
				if !slices.Contains(formKeys[part], key) {
					c.add(append(slices.Clone(path), key), "is no key that the component knows", cluster.MeantOr(removeIt, key, formKeys[part]))
				}
			}
		})
	}
	for _, part := range slices.Sorted(maps.Keys(keyForms)) {
		own := map[string]bool{}
		eachAt(c.base, nil, part+".*", nil, func(path []string, _ any) { own[path[len(path)-1]] = true })
		eachAt(c.after, c.base, part+".*", nil, func(path []string, value any) {
			key := path[len(path)-1]
			values, _ := value.([]any) // with dots and with slashes, it is the same parameter
			differs := func(other any) bool { return fmt.Sprint(other) != fmt.Sprint(values[0]) }
			switch fault := faultOf(keyForms[part], key); {
			case own[key]:
			case fault != nil:
				c.add(path, fault.Problem, fault.Remedy)
			case slices.ContainsFunc(values, differs):
				c.add(path, "is given twice, with dots and with slashes", "keep one")
			}
		})
	}
	c.checkAuthorizers()
	c.checkPods()
	c.checkControlPlane()
	files, _ := at(c.after["machine"], "files").([]any)
	for i, file := range files {
		where, _ := at(file, "path").(string)
		inside := strings.HasPrefix(where, "/var/") || strings.HasPrefix(where, "/etc/kubernetes/manifests/") || where == criPart
		if at(file, "op") == "create" && strings.HasPrefix(where, "/") && !inside {
			c.add([]string{"machine", fmt.Sprintf("files[%d]", counted(c.base["machine"], "files", i)), "path"},
				"is outside of /var, where Talos creates no file", "write one below /var")
		}
	}
}

// checkAuthorizers refuses authorizers of the API server that are there twice, and webhooks without what they need:
// ValidateAuthorizationConfiguration of k8s.io/apiserver.
func (c *comparison) checkAuthorizers() {
	seen := map[string]bool{}
	for i, authorizer := range items(at(c.after["cluster"], "apiServer"), "authorizationConfig") {
		part := []string{"cluster", "apiServer", cluster.ItemPath("authorizationConfig", i)}
		kind, _ := at(authorizer, "type").(string)
		name, _ := at(authorizer, "name").(string)
		webhook, _ := at(authorizer, "webhook").(map[string]any)
		switch {
		case seen["name "+name]:
			c.add(append(part, "name"), "is the name of another authorizer", "write another one")
		case seen["type "+kind] && kind != "Webhook":
			c.add(append(part, "type"), "is that of another authorizer, and only webhooks may be several", removeIt)
		case kind != "Webhook" && len(webhook) > 0:
			c.add(append(part, "webhook"), "is only taken of the type Webhook", removeIt)
		case kind == "Webhook":
			for _, needed := range []string{"connectionInfo", "failurePolicy", "subjectAccessReviewVersion", "timeout"} {
				if webhook[needed] == nil {
					c.add(append(part, "webhook", needed), "is missing, and the API server needs it", "add it")
				}
			}
		}
		seen["name "+name], seen["type "+kind] = true, true
	}
}

// checkControlPlane refuses a policy of audits without a rule, which the API server does not load (pkg/audit/policy of k8s.io/apiserver),
// and several controller managers that act at once, of which two may give one range of addresses to two nodes.
func (c *comparison) checkControlPlane() {
	if policy := at(c.after["cluster"], "apiServer", "auditPolicy"); policy != nil && len(items(policy, "rules")) == 0 {
		c.add([]string{"cluster", "apiServer", "auditPolicy", "rules"}, "has no rule, with which the API server does not start",
			"add a rule with a level")
	}
	const key = "controllerManager"
	elects := at(c.after["cluster"], key, "extraArgs", "leader-elect")
	if fmt.Sprint(elects) == "false" && len(c.cluster.ControlPlanes()) > 1 {
		c.add([]string{"cluster", key, "extraArgs", "leader-elect"}, "is off, so that all control planes act at once", removeIt)
	}
}

// criPart is the file outside of /var into which Talos puts what a user writes.
const criPart = "/etc/cri/conf.d/20-customization.part"

// counted is an item's index in the list of a key, after the items that Slipway's own list has there.
func counted(own any, key string, i int) int {
	if first := len(items(own, key)); i >= first {
		return i - first
	}
	return i
}

// eachAt calls visit for each value of a part, with its path. Patches append to lists, so that items are counted after Slipway's own.
func eachAt(tree, own any, part string, path []string, visit func(path []string, value any)) {
	key, rest, more := strings.Cut(part, ".")
	key, isList := strings.CutSuffix(key, "[]")
	keys := []string{key}
	if beginning, ending, isAny := strings.Cut(key, "*"); isAny {
		mapping, _ := tree.(map[string]any)
		keys = slices.DeleteFunc(slices.Sorted(maps.Keys(mapping)), func(key string) bool {
			return !strings.HasPrefix(key, beginning) || !strings.HasSuffix(key, ending)
		})
	}
	for _, key := range keys {
		values, lower := []any{at(tree, key)}, at(own, key)
		if isList {
			values, _ = values[0].([]any)
			lower = nil // the items are the user's
		}
		for i, value := range values {
			there := append(slices.Clone(path), key)
			if isList {
				there[len(path)] = fmt.Sprintf("%s[%d]", key, counted(own, key, i))
			}
			switch {
			case value == nil:
			case more:
				eachAt(value, lower, rest, there, visit)
			default:
				visit(there, value)
			}
		}
	}
}
