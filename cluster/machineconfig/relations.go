package machineconfig

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/slipway-platform/slipway/cluster"
)

// checkRelations refuses values that a component takes each by itself, and not together: with what the others have, or by default.
func (k *knowledge) checkRelations(a argued) {
	k.checkOIDC(a.flagsOf(k8s.APIServerID))
	for _, id := range []string{k8s.ControllerManagerID, k8s.SchedulerID} {
		k.checkLeadership(id, a.flagsOf(id))
	}
	k.checkElection(a.flagsOf(etcdID))
	k.checkAdmission(a.flagsOf(k8s.APIServerID))
	k.checkScheduler(a.scheduler)
	for _, id := range []string{k8s.APIServerID, k8s.ControllerManagerID, k8s.SchedulerID, k8s.KubeletID} {
		k.checkGates(a, id)
	}
	kubelet := settings{a.flagsOf(k8s.KubeletID), a.fields}
	for _, relation := range kubeletRelations {
		given := slices.IndexFunc(relation.fields, kubelet.has)
		if given < 0 || !relation.wrong(kubelet) {
			continue
		}
		item := relation.fields[given]
		part := kubeletConfig.part + "." + item
		if flag := flagOf(item); kubelet.flags[flag] != "" {
			part, item = componentParts[k8s.KubeletID]+".extraArgs."+flag, flag
		}
		k.refuse(part, item, relation.problem, relation.remedy)
	}
}

// checkAdmission refuses an admission plugin that is both switched on and off: AdmissionOptions.Validate of k8s.io/apiserver. Talos
// switches NodeRestriction on.
func (k *knowledge) checkAdmission(flags map[string]string) {
	const on, off = "enable-admission-plugins", "disable-admission-plugins"
	enabled := append(strings.Split(flags[on], ","), "NodeRestriction")
	for plugin := range strings.SplitSeq(flags[off], ",") {
		if plugin != "" && slices.Contains(enabled, plugin) {
			k.refuseFlag(k8s.APIServerID, off, plugin+" is switched on as well, and the API server starts with no such pair", removeIt)
		}
	}
	const requests, mutating = "max-requests-inflight", "max-mutating-requests-inflight"
	if flags[requests] == "0" && flags[mutating] == "0" { // FeatureOptions.ApplyTo of k8s.io/apiserver
		k.refuseFlag(k8s.APIServerID, requests, "leaves with "+mutating+" no request at all", "write a number, such as 400")
	}
}

// checkGates refuses a feature gate that is off, by itself or by default, while one that is on needs it: unsafeSetFromMap in featuregate of
// k8s.io/component-base. A component that emulates another version has other gates and other defaults.
func (k *knowledge) checkGates(a argued, id string) {
	flags, set := a.flagsOf(id), a.gatesOf(id)
	if len(set) == 0 || flags["emulated-version"]+flags["min-compatibility-version"] != "" {
		return
	}
	on := func(gate string) bool {
		byDefault, group, _ := strings.Cut(k.table[gateDefaults][gate], ",")
		own, isSet := set[gate]
		all, isInGroup := set[group]
		switch {
		case isSet && k.table[featureGates][gate] == "": // or else it is refused by itself
			return own
		case isInGroup:
			return all
		}
		return byDefault == "true"
	}
	off := map[string][]string{}
	for _, gate := range k.table.names(gateNeeds) {
		for needed := range strings.SplitSeq(k.table[gateNeeds][gate], ",") {
			if on(gate) && !on(needed) {
				off[needed] = append(off[needed], gate)
			}
		}
	}
	part := componentParts[id] + ".extraArgs.feature-gates"
	if flags["feature-gates"] == "" {
		part = kubeletConfig.part + ".featureGates"
	}
	for _, needed := range slices.Sorted(maps.Keys(off)) {
		k.refuse(part, needed, fmt.Sprintf("%s is off, and in Kubernetes 1.%d, these are on and need it: %s", needed, k.minor,
			strings.Join(off[needed], ", ")), "switch it on, or them off")
	}
}

// checkScheduler refuses two profiles of one name, no profile for most pods, and delays that end before they begin:
// ValidateKubeSchedulerConfiguration of Kubernetes.
func (k *knowledge) checkScheduler(config map[string]any) {
	const part, first, last = scheduler, "podInitialBackoffSeconds", "podMaxBackoffSeconds"
	names := map[string]bool{}
	for i, profile := range items(config, "profiles") {
		text, _ := at(profile, "schedulerName").(string)
		name := cmp.Or(text, "default-scheduler")
		if names[name] {
			k.refuse(cluster.ItemPath(part+"profiles", i), name, "is the second profile of the name "+name, "give it another schedulerName")
		}
		names[name] = true
	}
	if usual := "default-scheduler"; len(names) > 0 && !names[usual] {
		k.refuse(part+"profiles", usual, "have no "+usual+", so that nothing places pods that name no scheduler", "add a profile of that name")
	}
	for i, profile := range items(config, "profiles") {
		k.checkProfile(cluster.ItemPath(part+"profiles", i), profile)
	}
	shortest, _ := strconv.ParseFloat(cmp.Or(plainOf(config[first]), "1"), 64)
	if longest, err := strconv.ParseFloat(cmp.Or(plainOf(config[last]), "10"), 64); err == nil && longest < shortest {
		field := first
		if config[last] != nil {
			field = last
		}
		k.refuse(part+field, field, last+" is less than "+first+", which are 10 and 1 by default",
			"set both, the first one no less than the second")
	}
}

// checkProfile refuses a profile that lacks a plugin that each needs, and one that configures a plugin twice: NewFramework in
// pkg/scheduler/framework/runtime of Kubernetes, and ValidatePodTopologySpreadArgs.
func (k *knowledge) checkProfile(part string, profile any) {
	for _, point := range []string{"bind", "queueSort"} {
		given := at(profile, "plugins", point)
		isAll := func(plugin any) bool { return at(plugin, "name") == "*" }
		if slices.ContainsFunc(items(given, "disabled"), isAll) && len(items(given, "enabled")) == 0 {
			k.refuse(part+".plugins."+point, point, "has no plugin left, and the scheduler needs one", "enable one, or remove it")
		}
	}
	seen := map[string]bool{}
	for i, config := range items(profile, "pluginConfig") {
		there := cluster.ItemPath(part+".pluginConfig", i)
		name, _ := at(config, "name").(string)
		if name != "" && seen[name] {
			k.refuse(there, name, "is the second configuration of "+name, "put both into one")
		}
		seen[name] = true
		if args := at(config, "args"); at(args, "defaultingType") == "System" && len(items(args, "defaultConstraints")) > 0 {
			k.refuse(there+".args.defaultingType", "defaultingType", "System excludes defaultConstraints",
				"write List, or remove defaultConstraints")
		}
	}
}

// flagsOf returns the values of a component's flags. Of one that is given several times, it is the last.
func (a argued) flagsOf(id string) map[string]string {
	flags := map[string]string{}
	for _, argument := range a.arguments[id] {
		flag, value, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		flags[strings.ReplaceAll(flag, "_", "-")] = value
	}
	return flags
}

func (k *knowledge) refuseFlag(id, flag, problem, remedy string) {
	k.refuse(componentParts[id]+".extraArgs."+flag, flag, problem, remedy)
}

// checkOIDC checks the flags of OpenID Connect: BuiltInAuthenticationOptions.Validate of Kubernetes, pkg/kubeapiserver/options.
func (k *knowledge) checkOIDC(flags map[string]string) {
	const issuer, client, file = "oidc-issuer-url", "oidc-client-id", "authentication-config"
	given := slices.DeleteFunc([]string{issuer, client, "oidc-ca-file", "oidc-groups-claim", "oidc-groups-prefix", "oidc-required-claim",
		"oidc-signing-algs", "oidc-username-claim", "oidc-username-prefix"}, func(flag string) bool { return flags[flag] == "" })
	if len(given) == 0 {
		return
	}
	for _, needed := range []string{issuer, client} {
		if flags[needed] == "" {
			k.refuseFlag(k8s.APIServerID, given[0], given[0]+" needs "+needed, "add it")
		}
	}
	if url := flags[issuer]; url != "" && !strings.HasPrefix(url, "https://") {
		k.refuseFlag(k8s.APIServerID, issuer, issuer+" has a value that "+k8s.APIServerID+" refuses", "write an https URL")
	}
	if flags[file] != "" {
		k.refuseFlag(k8s.APIServerID, file, file+" is given beside "+given[0], "keep one of the two ways")
	}
}

// checkLeadership checks the times of the election of a leader: ValidateLeaderElectionConfiguration of k8s.io/component-base,
// and NewLeaderElector of k8s.io/client-go.
func (k *knowledge) checkLeadership(id string, flags map[string]string) {
	const lease, renew, retry = "leader-elect-lease-duration", "leader-elect-renew-deadline", "leader-elect-retry-period"
	if flags[lease]+flags[renew]+flags[retry] == "" || flags["leader-elect"] == "false" {
		return
	}
	long, err1 := time.ParseDuration(cmp.Or(flags[lease], "15s"))
	short, err2 := time.ParseDuration(cmp.Or(flags[renew], "10s"))
	pause, err3 := time.ParseDuration(cmp.Or(flags[retry], "2s"))
	switch {
	case err1 != nil || err2 != nil || err3 != nil:
	case long <= short:
		k.refuseFlag(id, lastGiven(flags, lease, renew), fmt.Sprintf("%s is not longer than %s, which is 15s and 10s by default", lease, renew),
			"make it longer")
	case short.Seconds() <= 1.2*pause.Seconds():
		k.refuseFlag(id, lastGiven(flags, renew, retry),
			fmt.Sprintf("%s is not longer than 1.2 times %s, which is 10s and 2s by default", renew, retry), "make it longer, or "+retry+" shorter")
	}
}

// checkElection checks the times of etcd's election: Config.Validate of etcd, server/embed.
func (k *knowledge) checkElection(flags map[string]string) {
	const election, heartbeat = "election-timeout", "heartbeat-interval"
	if flags[election]+flags[heartbeat] == "" {
		return
	}
	timeout, err1 := strconv.ParseUint(cmp.Or(flags[election], "1000"), 0, 32)
	tick, err2 := strconv.ParseUint(cmp.Or(flags[heartbeat], "100"), 0, 32)
	if err1 == nil && err2 == nil && (timeout < 5*tick || timeout > 50000) {
		k.refuseFlag(etcdID, lastGiven(flags, election, heartbeat), election+" is less than five times "+heartbeat+", or more than 50000",
			"write five times "+heartbeat+" or more")
	}
}

// lastGiven returns the second of two flags if it is given, or else the first.
func lastGiven(flags map[string]string, first, second string) string {
	if flags[second] != "" {
		return second
	}
	return first
}

// settings are the kubelet's: its flags, or else the fields of its configuration.
type settings struct {
	flags  map[string]string
	fields map[string]any
}

var inWord = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// otherFlags are the flags of fields that have another name.
var otherFlags = map[string]string{
	"imageGCHighThresholdPercent": "image-gc-high-threshold", "imageGCLowThresholdPercent": "image-gc-low-threshold",
	"imageMinimumGCAge": "minimum-image-ttl-duration", "reservedSystemCPUs": "reserved-cpus",
}

// flagOf is the kubelet's flag of a field, if it has one.
func flagOf(field string) string {
	return cmp.Or(otherFlags[field], strings.ToLower(inWord.ReplaceAllString(field, "$1-$2")))
}

func (s settings) has(field string) bool {
	return s.flags[flagOf(field)] != "" || s.fields[field] != nil
}

func (s settings) text(field string) string {
	if !s.has(field) {
		return ""
	}
	return cmp.Or(s.flags[flagOf(field)], fmt.Sprint(s.fields[field]))
}

func (s settings) list(field string) (list []string) {
	if flag := s.flags[flagOf(field)]; flag != "" {
		return strings.Split(flag, ",")
	}
	for _, item := range items(s.fields, field) {
		list = append(list, fmt.Sprint(item))
	}
	return list
}

func (s settings) pairs(field string) map[string]string {
	pairs := map[string]string{}
	for pair := range strings.SplitSeq(s.flags[flagOf(field)], ",") {
		if name, value, both := strings.Cut(strings.Replace(pair, "<", "=", 1), "="); both {
			pairs[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	if fields, is := s.fields[field].(map[string]any); is && len(pairs) == 0 {
		for name, value := range fields {
			pairs[name] = fmt.Sprint(value)
		}
	}
	return pairs
}

// number is that of a field, or another one without.
func (s settings) number(field string, otherwise float64) float64 {
	if number, err := strconv.ParseFloat(s.text(field), 64); err == nil {
		return number
	}
	return otherwise
}

// duration is that of a field, or another one without; 0 of a text that is none.
func (s settings) duration(field string, otherwise time.Duration) time.Duration {
	if !s.has(field) {
		return otherwise
	}
	duration, _ := time.ParseDuration(s.text(field))
	return duration
}

// reserves tells whether the kubelet reserves an amount of a resource. Talos reserves some of each resource if systemReserved is not given.
func (s settings) reserves(name string) bool {
	some := func(field string) bool {
		amount, err := resource.ParseQuantity(s.pairs(field)[name])
		return err == nil && amount.Sign() > 0
	}
	return len(s.pairs("systemReserved")) == 0 || some("systemReserved") || some("kubeReserved")
}

// enforces tells whether enforceNodeAllocatable has one of the words.
func (s settings) enforces(words ...string) bool {
	return slices.ContainsFunc(s.list("enforceNodeAllocatable"), func(word string) bool { return slices.Contains(words, word) })
}

// kubeletRelations are what the kubelet refuses of several settings: ValidateKubeletConfiguration of k8s.io/kubernetes, and pkg/kubelet/cm
// and pkg/kubelet/eviction. Talos's own settings count: internal/app/machined/pkg/controllers/k8s/kubelet_spec.go. The first of the fields
// that is given is refused.
var kubeletRelations = []struct {
	fields          []string
	wrong           func(settings) bool
	problem, remedy string
}{
	{[]string{"cgroupsPerQOS"}, func(s settings) bool {
		return s.text("cgroupsPerQOS") == "false" && !s.enforces("none")
	}, "is off, and the limits of pods are enforced by it", "write enforceNodeAllocatable: [none] as well"},
	{[]string{"cpuManagerPolicy"}, func(s settings) bool {
		return s.text("cpuManagerPolicy") == "static" && s.text("reservedSystemCPUs") == "" && !s.reserves("cpu")
	}, "is static, and no CPU is reserved", "reserve some in systemReserved.cpu"},
	{[]string{"cpuManagerPolicyOptions"}, func(s settings) bool {
		return len(s.pairs("cpuManagerPolicyOptions")) > 0 && s.text("cpuManagerPolicy") != "static"
	}, "is only taken with cpuManagerPolicy: static", "set that as well"},
	{[]string{"enableSystemLogQuery"}, func(s settings) bool {
		return s.text("enableSystemLogQuery") == "true" && s.text("enableSystemLogHandler") == "false"
	}, "needs enableSystemLogHandler", "switch that on"},
	{[]string{"enforceNodeAllocatable"}, func(s settings) bool {
		given := s.list("enforceNodeAllocatable")
		return len(slices.Compact(slices.Sorted(slices.Values(given)))) < len(given) || s.enforces("none") && len(given) > 1 ||
			s.enforces("system-reserved") && s.enforces("system-reserved-compressible") ||
			s.enforces("kube-reserved") && s.enforces("kube-reserved-compressible")
	}, "has words that exclude each other", "keep one of them"},
	{[]string{"enforceNodeAllocatable"}, func(s settings) bool {
		return s.enforces("system-reserved", "system-reserved-compressible") && s.text("systemReservedCgroup") == ""
	}, "has system-reserved, and needs the cgroup", "set systemReservedCgroup"},
	{[]string{"enforceNodeAllocatable"}, func(s settings) bool {
		return s.enforces("kube-reserved", "kube-reserved-compressible") && s.text("kubeReservedCgroup") == ""
	}, "has kube-reserved, and needs the cgroup", "set kubeReservedCgroup"},
	{[]string{"evictionSoft"}, func(s settings) bool {
		periods := s.pairs("evictionSoftGracePeriod")
		for signal, amount := range s.pairs("evictionSoft") {
			if amount != "0%" && amount != "100%" && periods[signal] == "" { // these two are ignored
				return true
			}
		}
		return false
	}, "has a signal without a period in evictionSoftGracePeriod", "add one there, or use evictionHard"},
	{[]string{"imageGCHighThresholdPercent", "imageGCLowThresholdPercent"}, func(s settings) bool {
		return s.number("imageGCLowThresholdPercent", 80) >= s.number("imageGCHighThresholdPercent", 85)
	}, "images are removed until the disk is as full as when that begins: 85 and 80 are the defaults",
		"set both, the high one above the low one"},
	{[]string{"imageMaximumGCAge", "imageMinimumGCAge"}, func(s settings) bool {
		most := s.duration("imageMaximumGCAge", 0)
		return most > 0 && most <= s.duration("imageMinimumGCAge", 2*time.Minute)
	}, "imageMaximumGCAge is not longer than imageMinimumGCAge, which is 2m by default", "make it longer"},
	{[]string{"maxParallelImagePulls"}, func(s settings) bool {
		return s.number("maxParallelImagePulls", 1) > 1 && s.text("serializeImagePulls") == "true"
	}, "is more than 1, and serializeImagePulls is on", "switch that off"},
	{[]string{"memoryManagerPolicy"}, func(s settings) bool {
		return s.text("memoryManagerPolicy") == "Static" && !s.has("reservedMemory") && len(s.pairs("systemReserved")) == 0
	}, "is Static, and needs the reserved memory of each NUMA node", "set reservedMemory; its sum is that of all that the kubelet reserves"},
	{[]string{"readOnlyPort", "healthzPort"}, func(s settings) bool {
		public, health := s.number("readOnlyPort", 0), s.number("healthzPort", 10248)
		return public == kubeletPort || health == kubeletPort || public == health && public != 0
	}, "is a port that the kubelet has for something else", "write another one"},
	{[]string{"reservedSystemCPUs"}, func(s settings) bool {
		return s.text("reservedSystemCPUs") != "" && s.text("systemReservedCgroup")+s.text("kubeReservedCgroup") != ""
	}, "excludes systemReservedCgroup and kubeReservedCgroup", "keep one of them"},
	{[]string{"shutdownGracePeriodByPodPriority"}, func(s settings) bool {
		return len(items(s.fields, "shutdownGracePeriodByPodPriority")) > 0 &&
			s.duration("shutdownGracePeriod", talosGrace)+s.duration("shutdownGracePeriodCriticalPods", talosCritical) > 0
	}, "excludes shutdownGracePeriod and shutdownGracePeriodCriticalPods, which Talos sets", "set both to 0s"},
	{[]string{"shutdownGracePeriodCriticalPods", "shutdownGracePeriod"}, func(s settings) bool {
		return s.duration("shutdownGracePeriodCriticalPods", talosCritical) > s.duration("shutdownGracePeriod", talosGrace)
	}, "shutdownGracePeriodCriticalPods is longer than shutdownGracePeriod, which are 10s and 30s by default",
		"set both, the first one no longer than the second"},
}

// What Talos sets without a value of the user's.
const (
	kubeletPort   = constants.KubeletPort
	talosGrace    = constants.KubeletShutdownGracePeriod
	talosCritical = constants.KubeletShutdownGracePeriodCriticalPods
)
