package machineconfig

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/siderolabs/gen/xslices"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"

	"github.com/slipway-platform/slipway/cluster"
)

// wrong is an argument in a configuration that a component of Kubernetes does not take, so that it does not start.
type wrong struct {
	fault
	item string // the flag, the feature gate or the admission plugin
}

// argued are the arguments that a configuration gives to etcd and to the components of Kubernetes, by their ids in Talos, and the fields of
// their own configurations that it gives to the kubelet and to the scheduler.
type argued struct {
	arguments map[string][]string
	fields    map[string]any
	scheduler map[string]any
	partial   bool // patches add more, so that values cannot be compared with each other
}

// etcdID is the id of etcd, which Talos runs as a service of its own.
const etcdID = "etcd"

// componentParts are the parts of a configuration that give arguments, by the ids of the components.
var componentParts = map[string]string{
	k8s.APIServerID: "cluster.apiServer", k8s.ControllerManagerID: "cluster.controllerManager", k8s.SchedulerID: "cluster.scheduler",
	k8s.KubeletID: "machine.kubelet", etcdID: "cluster.etcd",
}

// arguedBy returns the arguments that a configuration gives.
func arguedBy(full config.Provider) argued {
	given := argued{arguments: map[string][]string{}}
	add := func(id string, extra map[string][]string) {
		for _, flag := range slices.Sorted(maps.Keys(extra)) {
			for _, value := range extra[flag] {
				given.arguments[id] = append(given.arguments[id], "--"+flag+"="+value)
			}
		}
	}
	if c := full.Cluster(); c != nil {
		add(k8s.APIServerID, c.APIServer().ExtraArgs())
		add(k8s.ControllerManagerID, c.ControllerManager().ExtraArgs())
		add(k8s.SchedulerID, c.Scheduler().ExtraArgs())
		add(etcdID, c.Etcd().ExtraArgs())
		given.scheduler = c.Scheduler().Config()
	}
	if m := full.Machine(); m != nil {
		add(k8s.KubeletID, m.Kubelet().ExtraArgs())
		given.fields = m.Kubelet().ExtraConfig()
	}
	return given
}

// FeatureGates returns the names of the feature gates of Kubernetes in a configuration, by the path of the key that has them.
func FeatureGates(full config.Provider) map[string][]string {
	given, names := arguedBy(full), map[string][]string{}
	for id, arguments := range given.arguments {
		for _, argument := range arguments {
			if list, is := strings.CutPrefix(argument, "--feature-gates="); is && id != etcdID {
				path := componentParts[id] + ".extraArgs.feature-gates"
				for _, set := range gatesOf(list) {
					names[path] = append(names[path], set.name)
				}
			}
		}
	}
	if set := given.gateFields(); set != nil {
		names[kubeletConfig.part+".featureGates"] = slices.Sorted(maps.Keys(set))
	}
	return names
}

// Unfit returns which arguments in a node's whole configuration a release of Kubernetes does not take, each with its path, by the names of
// the components. A component that has one does not start.
func Unfit(full config.Provider, kubernetes string) map[string][]string {
	found := map[string][]string{}
	for _, one := range arguedBy(full).wrongFor(kubernetes) {
		for id, part := range componentParts {
			if cluster.Within(one.part, part) {
				found[id] = append(found[id], one.part+": "+one.problem)
			}
		}
	}
	return found
}

// UnfitForTalos returns the arguments that a release of Talos keeps for itself, and those that its etcd does not have.
func UnfitForTalos(full config.Provider, talos string) []string {
	return xslices.Map(arguedBy(full).keptBy(talos), func(one wrong) string { return one.part + ": " + one.problem })
}

// gateFields are the feature gates in the kubelet's own configuration.
func (a argued) gateFields() map[string]any {
	gates, _ := a.fields["featureGates"].(map[string]any)
	return gates
}

// gatesOf returns the feature gates that a component is given. The kubelet's flag comes before its own configuration.
func (a argued) gatesOf(id string) map[string]bool {
	set := map[string]bool{}
	if id == k8s.KubeletID {
		for name, value := range a.gateFields() {
			if on, is := value.(bool); is {
				set[name] = on
			}
		}
	}
	for _, argument := range a.arguments[id] {
		if list, is := strings.CutPrefix(argument, "--feature-gates="); is {
			for _, one := range gatesOf(list) {
				if on, err := strconv.ParseBool(one.value); err == nil {
					set[one.name] = on
				}
			}
		}
	}
	return set
}

// wrongFor returns the arguments that a version of Kubernetes does not take: what was removed, and what is mistyped.
func (a argued) wrongFor(version string) (all []wrong) {
	if len(a.arguments)+len(a.fields)+len(a.scheduler) == 0 {
		return nil
	}
	comes, err := semver.ParseTolerant(version)
	if err != nil {
		return nil
	}
	for minor := uint64(oldestRemoval); minor <= comes.Minor; minor++ {
		all = append(all, a.removedIn(minor)...)
	}
	for _, one := range a.unknownTo(comes) {
		if !slices.ContainsFunc(all, func(other wrong) bool { return other.part == one.part && other.item == one.item }) {
			all = append(all, one)
		}
	}
	return all
}

// kept are the flags that Talos keeps for itself in some of the supported releases, by component: since a minor release, or before one.
// With such a flag it takes the configuration, and then starts no API server or no etcd (MergeDenied in control_plane_final.go,
// denyListArgs in etcd.go of machined). What it keeps in every supported release is in owned.txt.
var kept = map[string][]struct {
	flag          string
	since, before uint64
}{
	k8s.APIServerID: {{flag: "tls-min-version", since: 14}},
	etcdID: {
		{flag: "experimental-compact-hash-check-enabled", before: 14}, {flag: "experimental-initial-corrupt-check", before: 14},
		{flag: "experimental-watch-progress-notify-interval", before: 14},
		{flag: "feature-gates", since: 14}, {flag: "listen-client-http-urls", since: 14}, {flag: "tls-min-version", since: 14},
		{flag: "watch-progress-notify-interval", since: 14},
	},
}

// keptBy returns the flags that a release of Talos keeps for itself, and those that its etcd does not have any more.
func (a argued) keptBy(talos string) []wrong {
	var found knowledge
	comes, err := semver.ParseTolerant(talos)
	if err != nil {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(kept)) {
		for _, keeps := range kept[id] {
			given := slices.ContainsFunc(a.arguments[id], func(argument string) bool { return strings.HasPrefix(argument, "--"+keeps.flag+"=") })
			if given && comes.Minor >= keeps.since && (keeps.before == 0 || comes.Minor < keeps.before) {
				found.refuseFlag(id, keeps.flag, fmt.Sprintf("Talos %d.%d sets %s itself, and starts no %s that is given it, too",
					comes.Major, comes.Minor, keeps.flag, id), removeIt)
			}
		}
	}
	table := etcdTables[comes.Minor]
	for _, argument := range a.arguments[etcdID] {
		flag, _, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		gone := removedBy(etcdID, flag, table) != 0 || table != 0 && slices.Contains(goneFromEtcd, flag)
		if gone && !slices.ContainsFunc(found.wrong, func(one wrong) bool { return one.item == flag }) {
			problem := fmt.Sprintf("%s is no flag any more of the etcd of Talos %d.%d", flag, comes.Major, comes.Minor)
			found.refuseFlag(etcdID, flag, problem, removeIt)
		}
	}
	return found.wrong
}

// goneFromEtcd are the flags that etcd 3.5 had and 3.6 has not: its CHANGELOG.
var goneFromEtcd = []string{"enable-v2", "experimental-enable-v2v3", "proxy-dial-timeout", "proxy-failure-wait",
	"proxy-read-timeout", "proxy-refresh-interval", "proxy-write-timeout"}

// etcdTables are the minor releases of Kubernetes whose tables have the flags of etcd 3.6 and 3.7, by the minor release of Talos that has
// this etcd: DefaultEtcdVersion of its machinery.
var etcdTables = map[uint64]uint64{12: 36, 13: 36, 14: 37}

// The names of the nodes that the tables are asked about. The tables look at the feature gates of the API server only. So a kubelet's gates
// are asked about as an API server's, on a node of its own.
const (
	nodeOfAll     = "all"
	nodeOfKubelet = "kubelet"
)

// wrongIn returns parts of the last configuration that the declared Kubernetes does not take, each for the patch that caused it, but for
// those that were found for another reason. What no patch has caused is in talos.kubelet.extraArgs.
func (c model) wrongIn(states []state, known []finding) []finding {
	found := caused(states, sameFault, func(s state) []fault {
		given := arguedBy(s.full)
		kept := given.keptBy(c.Talos.Version)
		all := slices.Concat(kept, slices.DeleteFunc(given.wrongFor(c.Kubernetes.Version), func(one wrong) bool {
			return slices.ContainsFunc(kept, func(other wrong) bool { return other.part == one.part })
		}))
		return xslices.Map(all, func(one wrong) fault { return one.fault })
	})
	return slices.DeleteFunc(found, func(one finding) bool {
		return slices.ContainsFunc(known, func(other finding) bool { return other.part == one.part })
	})
}

// checkKubeletFlags refuses in talos.kubelet.extraArgs the flags that no patch may set, and then those that Kubernetes does not take.
func (c model) checkKubeletFlags() (violations []Violation) {
	given := argued{arguments: map[string][]string{}, partial: slices.ContainsFunc(c.Machines(), func(machine cluster.Machine) bool {
		return len(c.userPatches(machine)) > 0
	})}
	refuse := func(flag, problem, remedy string) {
		path := cluster.EntryPath("talos.kubelet.extraArgs", flag)
		violations = append(violations, Violation{Patch: path, Problem: problem, Remedy: remedy})
	}
	for _, flag := range slices.Sorted(maps.Keys(c.Talos.Kubelet.ExtraArgs)) {
		if part := []string{"machine", "kubelet", "extraArgs", flag}; isOwned(part) {
			refuse(flag, "is a setting that Slipway sets or relies on", remedyFor(part))
		} else {
			given.arguments[k8s.KubeletID] = append(given.arguments[k8s.KubeletID], "--"+flag+"="+c.Talos.Kubelet.ExtraArgs[flag])
		}
	}
	for _, one := range given.wrongFor(c.Kubernetes.Version) {
		refuse(strings.TrimPrefix(one.part, "machine.kubelet.extraArgs."), one.problem, one.remedy)
	}
	return violations
}
