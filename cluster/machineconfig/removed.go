package machineconfig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	cosi "github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	"github.com/siderolabs/go-kubernetes/kubernetes/upgrade"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
)

// oldestRemoval is the minor release of Kubernetes with the first removals that are known.
const oldestRemoval = 25

// removedIn returns what a minor release has removed, as far as the tables of go-kubernetes know.
func (a argued) removedIn(minor uint64) []wrong {
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
	var all knowledge
	add := func(items []upgrade.ComponentItem, flag, what string) {
		for _, item := range items {
			of := item.Component
			if item.Node == nodeOfKubelet {
				of = k8s.KubeletID
			}
			part := componentParts[of] + ".extraArgs." + cmp.Or(flag, item.Value)
			if of == k8s.KubeletID && a.gateFields()[item.Value] != nil {
				part = kubeletConfig.part + ".featureGates"
			}
			all.refuse(part, item.Value, fmt.Sprintf("%s is %s that Kubernetes 1.%d has removed", item.Value, what, minor), removeIt)
		}
	}
	add(found.AdmissionFlags, "enable-admission-plugins", "an admission plugin")
	add(found.FeatureGates, "feature-gates", "a feature gate")
	add(found.CLIFlags, "", "a flag")
	return all.wrong
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
	gates := slices.Sorted(maps.Keys(a.gateFields()))
	for _, argument := range a.arguments[k8s.KubeletID] {
		if value, is := strings.CutPrefix(argument, "--feature-gates="); is {
			gates = append(gates, strings.Split(value, ",")...)
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
