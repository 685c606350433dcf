package machineconfig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/cosi-project/runtime/pkg/resource"
	cosi "github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	"github.com/siderolabs/go-kubernetes/kubernetes/upgrade"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"

	"github.com/slipway-platform/slipway/cluster"
)

// oldestRemoval is the minor release of Kubernetes with the first removals that are known.
const oldestRemoval = 25

// removal is something of a configuration that a release of Kubernetes has removed: a component does not start with it.
type removal struct{ part, problem string }

// argued are the arguments that a configuration gives to the components of Kubernetes, by their ids in Talos, and the feature gates that it
// gives to the kubelet.
type argued struct {
	arguments map[string][]string
	gates     []string
}

// componentParts are the parts of a configuration that give arguments, by the ids of the components.
var componentParts = map[string]string{
	k8s.APIServerID: "cluster.apiServer", k8s.ControllerManagerID: "cluster.controllerManager", k8s.SchedulerID: "cluster.scheduler",
	k8s.KubeletID: "machine.kubelet",
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
	}
	if m := full.Machine(); m != nil {
		add(k8s.KubeletID, m.Kubelet().ExtraArgs())
		if set, ok := m.Kubelet().ExtraConfig()["featureGates"].(map[string]any); ok {
			given.gates = slices.Sorted(maps.Keys(set))
		}
	}
	return given
}

// removedBy returns what the releases of Kubernetes up to a version have removed of the arguments. What the newest minor releases have
// removed is known only as far as the tables of go-kubernetes go.
func (a argued) removedBy(version string) (all []removal) {
	if len(a.arguments)+len(a.gates) == 0 {
		return nil
	}
	comes, err := semver.ParseTolerant(version)
	if err != nil {
		return nil
	}
	for minor := uint64(oldestRemoval); minor <= comes.Minor; minor++ {
		all = append(all, a.removedIn(minor)...)
	}
	return all
}

// The names of the nodes that the tables are asked about. The tables look at the feature gates of the API server only. So a kubelet's gates
// are asked about as an API server's, on a node of its own.
const (
	nodeOfAll     = "all"
	nodeOfKubelet = "kubelet"
)

// removedIn returns what a minor release has removed.
func (a argued) removedIn(minor uint64) []removal {
	path, err := upgrade.NewPath(fmt.Sprintf("1.%d.0", minor-1), fmt.Sprintf("1.%d.0", minor))
	if err != nil {
		return nil
	}
	states := map[string]cosi.State{nodeOfAll: a.state(), nodeOfKubelet: a.kubeletGates()}
	checks, err := upgrade.NewChecksWithStateProvider(path, func(_ context.Context, node string) (cosi.State, error) {
		return states[node], nil
	}, nil, []string{nodeOfAll, nodeOfKubelet}, nil, func(string, ...any) {})
	if err != nil {
		return nil
	}
	var found upgrade.ComponentRemovedItemsError
	if err := checks.Run(context.Background()); !errors.As(err, &found) {
		return nil
	}
	var all []removal
	add := func(items []upgrade.ComponentItem, flag, what string) {
		for _, item := range items {
			of := item.Component
			if item.Node == nodeOfKubelet {
				of = k8s.KubeletID
			}
			one := removal{
				part:    componentParts[of] + ".extraArgs",
				problem: fmt.Sprintf("%s is %s that Kubernetes 1.%d has removed", item.Value, what, minor),
			}
			switch {
			case of == k8s.KubeletID && slices.Contains(a.gates, item.Value):
				one.part = componentParts[of] + ".extraConfig.featureGates"
			case flag == "":
				one.part = one.part + "." + item.Value
			default:
				one.part = one.part + "." + flag
			}
			all = append(all, one)
		}
	}
	add(found.AdmissionFlags, "enable-admission-plugins", "an admission plugin")
	add(found.FeatureGates, "feature-gates", "a feature gate")
	add(found.CLIFlags, "", "a flag")
	return all
}

// state returns the resources of a node whose components have the arguments.
func (a argued) state() cosi.State {
	kubelet := k8s.NewKubeletSpec(k8s.NamespaceName, k8s.KubeletID)
	kubelet.TypedSpec().Args = a.arguments[k8s.KubeletID]
	all := []resource.Resource{kubelet}
	for _, id := range []string{k8s.APIServerID, k8s.ControllerManagerID, k8s.SchedulerID} {
		all = append(all, podOf(id, a.arguments[id]))
	}
	return stateWith(all)
}

// kubeletGates returns the resources of a node whose API server has the feature gates of the kubelet.
func (a argued) kubeletGates() cosi.State {
	gates := a.gates
	for _, argument := range a.arguments[k8s.KubeletID] {
		if value, is := strings.CutPrefix(argument, "--feature-gates="); is {
			gates = append(slices.Clone(gates), strings.Split(value, ",")...)
		}
	}
	return stateWith([]resource.Resource{podOf(k8s.APIServerID, []string{"--feature-gates=" + strings.Join(gates, ",")})})
}

// podOf returns the static pod of a component.
func podOf(id string, arguments []string) *k8s.StaticPod {
	pod := k8s.NewStaticPod(k8s.NamespaceName, id)
	pod.TypedSpec().Pod = map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": id, "command": arguments}}}}
	return pod
}

func stateWith(resources []resource.Resource) cosi.State {
	state := cosi.WrapCore(namespaced.NewState(inmem.Build))
	for _, one := range resources {
		_ = state.Create(context.Background(), one) // in memory, and each once
	}
	return state
}

// removedIn returns parts of the last configuration that the declared Kubernetes does not have any more, each for the patch that caused it.
// What no patch has caused is in talos.kubelet.extraArgs.
func (c model) removedIn(states []state) (found []finding) {
	of := func(s state) []removal { return arguedBy(s.full).removedBy(c.Kubernetes.Version) }
	for _, one := range of(states[len(states)-1]) {
		if by, caused := cause(states, func(s state) bool { return slices.Contains(of(s), one) }); caused {
			found = append(found, by.finding(one.part, one.problem, removeIt))
		}
	}
	return found
}

// removedKubeletFlags refuses in talos.kubelet.extraArgs what the declared Kubernetes does not have any more.
func (c model) removedKubeletFlags() (violations []Violation) {
	given := argued{arguments: map[string][]string{}}
	for _, flag := range slices.Sorted(maps.Keys(c.Talos.Kubelet.ExtraArgs)) {
		given.arguments[k8s.KubeletID] = append(given.arguments[k8s.KubeletID], "--"+flag+"="+c.Talos.Kubelet.ExtraArgs[flag])
	}
	if len(given.arguments) == 0 {
		return nil
	}
	for _, one := range given.removedBy(c.Kubernetes.Version) {
		flag := strings.TrimPrefix(one.part, "machine.kubelet.extraArgs.")
		violations = append(violations, Violation{
			Patch: cluster.EntryPath("talos.kubelet.extraArgs", flag), Problem: one.problem, Remedy: removeIt,
		})
	}
	return violations
}
