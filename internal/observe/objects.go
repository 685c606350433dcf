package observe

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/cluster/secrecy"
	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

func kubeNode(before *gate.Node, object *unstructured.Unstructured) (gate.Node, error) {
	node, err := kubeapi.Typed[corev1.Node](object)
	if err != nil {
		return gate.Node{}, err
	}
	seen := gate.Node{
		Name: node.Name, Cordoned: node.Spec.Unschedulable, Labels: node.Labels,
		Kubelet: node.Status.NodeInfo.KubeletVersion,
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			seen.Ready, seen.Reason, seen.Message = string(condition.Status), condition.Reason, condition.Message
			seen.Reported = condition.LastHeartbeatTime.Time
			if before == nil && lostBefore(node, condition, time.Now()) {
				seen.Lost = 1
			}
		}
	}
	if before != nil {
		seen.Lost = before.Lost
		if before.Ready == "True" && seen.Ready != "True" {
			seen.Lost++
		}
	}
	for _, taint := range node.Spec.Taints {
		seen.Taints = append(seen.Taints, taint.ToString())
	}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			if ip, err := netip.ParseAddr(address.Address); err == nil { // none is the name of a host
				seen.Addresses = append(seen.Addresses, ip)
			}
		}
	}
	seen.PodCIDRs, err = prefixes(node.Spec.PodCIDRs)
	return seen, err
}

// lostBefore reports whether a node that is not Ready was Ready within FlapMemory: it may be flapping. The condition of a new node is as
// old as the node.
func lostBefore(node corev1.Node, ready corev1.NodeCondition, now time.Time) bool {
	since := ready.LastTransitionTime.Time
	return ready.Status != corev1.ConditionTrue && since.Sub(node.CreationTimestamp.Time) > 5*time.Second && now.Sub(since) < health.FlapMemory
}

func kubePod(before *kube.Pod, object *unstructured.Unstructured) (kube.Pod, error) {
	pod, err := kubeapi.Typed[corev1.Pod](object)
	if err != nil {
		return kube.Pod{}, err
	}
	seen := kube.Pod{
		Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels, Node: pod.Spec.NodeName, Phase: string(pod.Status.Phase),
		Deleting: pod.DeletionTimestamp != nil,
	}
	for _, condition := range pod.Status.Conditions {
		switch condition.Type {
		case corev1.PodReady:
			seen.Ready, seen.ReadySince = condition.Status == corev1.ConditionTrue, condition.LastTransitionTime.Time
		case corev1.PodScheduled:
			if condition.Status != corev1.ConditionTrue {
				seen.Unscheduled = condition.Message
			}
		}
	}
	if before != nil {
		seen.Lost = before.Lost
		if before.Ready && !seen.Ready {
			seen.Lost++
		}
	}
	images := map[string]string{}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		images[c.Name] = c.Image
	}
	add := func(statuses []corev1.ContainerStatus, init bool) {
		for _, status := range statuses {
			c := container(status)
			c.Init, c.Image = init, cmp.Or(images[c.Name], status.Image)
			delete(images, c.Name)
			seen.Containers = append(seen.Containers, c)
		}
	}
	add(pod.Status.InitContainerStatuses, true)
	add(pod.Status.ContainerStatuses, false)
	for _, c := range pod.Spec.Containers {
		if image, unreported := images[c.Name]; unreported {
			seen.Containers = append(seen.Containers, kube.Container{Name: c.Name, Image: image})
		}
	}
	return seen, nil
}

func container(status corev1.ContainerStatus) kube.Container {
	return kube.Container{
		Name: status.Name, Ready: status.Ready, Restarts: int(status.RestartCount),
		State: containerState(status.State), Last: containerState(status.LastTerminationState),
	}
}

func containerState(state corev1.ContainerState) string {
	join := func(parts ...string) string {
		return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
	}
	switch {
	case state.Waiting != nil:
		return join("waiting", state.Waiting.Reason, said(state.Waiting.Message))
	case state.Terminated != nil:
		return join("terminated", state.Terminated.Reason, fmt.Sprintf("exit code %d", state.Terminated.ExitCode), said(state.Terminated.Message))
	case state.Running != nil:
		return "running, not ready"
	}
	return ""
}

// said returns what a program has said, without anything that may be a secret.
func said(text string) string { return strings.Join(secrecy.Lines(strings.TrimSpace(text)), "\n") }

// workload reads the state of a rollout.
func workload(object *unstructured.Unstructured) (kube.Workload, error) {
	number := func(path ...string) int {
		n, _, _ := unstructured.NestedInt64(object.Object, path...)
		return int(n)
	}
	w := kube.Workload{
		Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
		Release:  object.GetAnnotations()["meta.helm.sh/release-name"],
		Labels:   object.GetLabels(),
		Observed: number("status", "observedGeneration") >= int(object.GetGeneration()),
		Failure:  replicaFailure(object),
	}
	strategy, _, _ := unstructured.NestedString(object.Object, "spec", "updateStrategy", "type")
	w.OnDelete = strategy == "OnDelete"
	w.Selector, _, _ = unstructured.NestedStringMap(object.Object, "spec", "selector", "matchLabels")
	template, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "template")
	of, _ := template.(map[string]any)
	pods, err := kubeapi.Typed[corev1.PodTemplateSpec](&unstructured.Unstructured{Object: of})
	if err != nil {
		return w, err
	}
	w.NodeSelector, w.Tolerations = pods.Spec.NodeSelector, pods.Spec.Tolerations
	switch w.Kind {
	case "DaemonSet":
		w.Desired, w.Updated = number("status", "desiredNumberScheduled"), number("status", "updatedNumberScheduled")
		w.Generation = object.GetAnnotations()["deprecated.daemonset.template.generation"] // of apps/v1, and set by every API server
	case "Deployment", "StatefulSet":
		w.Desired, w.Updated = number("spec", "replicas"), number("status", "updatedReplicas")
		w.Old = max(0, number("status", "replicas")-w.Updated)
	default:
		return w, fmt.Errorf("kind %s is not a workload", w.Kind)
	}
	return w, nil
}

// replicaFailure returns the message of the condition ReplicaFailure: why a Deployment cannot create pods. "" without it.
func replicaFailure(object *unstructured.Unstructured) string {
	if failure := kubeapi.ConditionOf(object.Object, "ReplicaFailure"); failure.Status == "True" {
		return firstLine(failure.Message)
	}
	return ""
}

// settings reads a ConfigMap.
func settings(object *unstructured.Unstructured) (gate.Settings, error) {
	values, _, err := unstructured.NestedStringMap(object.Object, "data")
	return values, err
}

// serviceCIDR reads a ServiceCIDR.
func serviceCIDR(object *unstructured.Unstructured) (gate.Ranges, error) {
	return ranges(object, "spec", "cidrs")
}

// ciliumNode reads the pod ranges of a CiliumNode.
func ciliumNode(object *unstructured.Unstructured) (gate.Ranges, error) {
	return ranges(object, "spec", "ipam", "podCIDRs")
}

func ranges(object *unstructured.Unstructured, path ...string) (gate.Ranges, error) {
	texts, _, err := unstructured.NestedStringSlice(object.Object, path...)
	if err != nil {
		return gate.Ranges{}, err
	}
	cidrs, err := prefixes(texts)
	return gate.Ranges{Name: object.GetName(), CIDRs: cidrs}, err
}

// prefixes reads ranges. Host bits are left out.
func prefixes(texts []string) ([]netip.Prefix, error) {
	var read []netip.Prefix
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, err
		}
		read = append(read, prefix.Masked())
	}
	return read, nil
}
