package perform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/internal/rotate"
	"github.com/slipway-platform/slipway/internal/turn/live"
)

var (
	configMapsOf  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	namespacesOf  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	podsOf        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	replicaSetsOf = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
)

// workloadsOf are the kinds of workloads that a change of their template restarts.
var workloadsOf = map[string]schema.GroupVersionResource{
	"Deployment":  {Group: "apps", Version: "v1", Resource: "deployments"},
	"DaemonSet":   {Group: "apps", Version: "v1", Resource: "daemonsets"},
	"StatefulSet": {Group: "apps", Version: "v1", Resource: "statefulsets"},
}

// objects returns the objects of a resource, of all namespaces.
func objects[T any](ctx context.Context, c *clients, of schema.GroupVersionResource, options metav1.ListOptions) ([]T, error) {
	var all []T
	err := c.ask(ctx, func(members *live.Cluster) error {
		found, err := members.Select(ctx, of, options)
		all = nil
		for i := range found {
			var one T
			if err == nil {
				err = runtime.DefaultUnstructuredConverter.FromUnstructured(found[i].Object, &one)
			}
			all = append(all, one)
		}
		return err
	})
	return all, err
}

// Roots implements kubernetes.
func (c *clients) Roots(ctx context.Context) ([]rotate.Root, error) {
	namespaces, err := objects[corev1.Namespace](ctx, c, namespacesOf, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	maps, err := objects[corev1.ConfigMap](ctx, c, configMapsOf, metav1.ListOptions{FieldSelector: "metadata.name=" + rotate.RootCA})
	if err != nil {
		return nil, err
	}
	var roots []rotate.Root
	for _, namespace := range namespaces {
		if namespace.DeletionTimestamp != nil || namespace.Status.Phase == corev1.NamespaceTerminating {
			continue
		}
		root := rotate.Root{Namespace: namespace.Name}
		for _, one := range maps {
			if one.Namespace != namespace.Name {
				continue
			}
			root.UID, root.Certificates, root.Kept = string(one.UID), rotate.Split(one.Data["ca.crt"]), one.Immutable != nil && *one.Immutable
			for _, entry := range one.ManagedFields {
				if entry.Manager == live.FieldManager && entry.Time != nil {
					root.Since = entry.Time.Time
				}
			}
		}
		roots = append(roots, root)
	}
	return roots, nil
}

// Keep implements kubernetes.
func (c *clients) Keep(ctx context.Context, root rotate.Root, certificates string) error {
	return c.ask(ctx, func(members *live.Cluster) error {
		return members.Patch(ctx, configMapsOf, root.Namespace, rotate.RootCA, map[string]any{
			"data": map[string]any{"ca.crt": certificates}, "immutable": true, "metadata": map[string]any{"uid": root.UID},
		})
	})
}

// Release implements kubernetes.
func (c *clients) Release(ctx context.Context, root rotate.Root) error {
	return c.ask(ctx, func(members *live.Cluster) error {
		return members.Delete(ctx, configMapsOf, root.Namespace, rotate.RootCA, types.UID(root.UID))
	})
}

// restartable is what a run needs of a workload.
type restartable struct {
	problem    string // why a change of its template restarts nothing; "" if it does
	unfinished string // what is missing until its newest version is rolled out; "" if nothing is
}

// workloads returns what restarts pods, and the names of the Deployments of ReplicaSets.
func (c *clients) workloads(ctx context.Context) (all map[rotate.Workload]restartable, deployments map[rotate.Workload]string, err error) {
	all, deployments = map[rotate.Workload]restartable{}, map[rotate.Workload]string{}
	add := func(kind string, one metav1.Object, stays bool, why, unfinished string) {
		seen := restartable{unfinished: unfinished}
		if stays {
			seen.problem = fmt.Sprintf("is of a %s %s", kind, why)
		}
		all[rotate.Workload{Kind: kind, Namespace: one.GetNamespace(), Name: one.GetName()}] = seen
	}
	replicaSets, err1 := objects[appsv1.ReplicaSet](ctx, c, replicaSetsOf, metav1.ListOptions{})
	for i := range replicaSets {
		if owner := metav1.GetControllerOf(&replicaSets[i]); owner != nil && owner.Kind == "Deployment" {
			deployments[rotate.Workload{Kind: "ReplicaSet", Namespace: replicaSets[i].Namespace, Name: replicaSets[i].Name}] = owner.Name
		}
	}
	const onDelete = "with the update strategy OnDelete"
	found, err2 := objects[appsv1.Deployment](ctx, c, workloadsOf["Deployment"], metav1.ListOptions{})
	for i := range found {
		one, s := &found[i], found[i].Status
		add("Deployment", one, one.Spec.Paused, "that is paused",
			unfinished(one.Generation, s.ObservedGeneration, replicas(one.Spec.Replicas), s.UpdatedReplicas, s.Replicas))
	}
	daemonSets, err3 := objects[appsv1.DaemonSet](ctx, c, workloadsOf["DaemonSet"], metav1.ListOptions{})
	for i := range daemonSets {
		one, s := &daemonSets[i], daemonSets[i].Status
		add("DaemonSet", one, one.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType, onDelete,
			unfinished(one.Generation, s.ObservedGeneration, s.DesiredNumberScheduled, s.UpdatedNumberScheduled, s.CurrentNumberScheduled))
	}
	statefulSets, err4 := objects[appsv1.StatefulSet](ctx, c, workloadsOf["StatefulSet"], metav1.ListOptions{})
	for i := range statefulSets {
		one, s := &statefulSets[i], statefulSets[i].Status
		add("StatefulSet", one, one.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType, onDelete,
			unfinished(one.Generation, s.ObservedGeneration, replicas(one.Spec.Replicas), s.UpdatedReplicas, s.Replicas))
	}
	return all, deployments, errors.Join(err1, err2, err3, err4)
}

func replicas(declared *int32) int32 {
	if declared == nil {
		return 1
	}
	return *declared
}

// unfinished says what is missing until all pods are of the newest version. It does not ask whether they are Ready: a pod that was not
// Ready before need not be now, and workloads keep to their own limits.
func unfinished(generation, observed int64, wanted, updated, all int32) string {
	switch {
	case observed < generation:
		return "its controller has not seen the change"
	case updated < wanted || all > updated:
		return fmt.Sprintf("%d of %d pods are new ones", updated, max(wanted, all))
	}
	return ""
}

// Pods implements kubernetes.
func (c *clients) Pods(ctx context.Context) ([]rotate.Pod, error) {
	found, err := objects[corev1.Pod](ctx, c, podsOf, metav1.ListOptions{
		FieldSelector: "status.phase!=Succeeded,status.phase!=Failed",
	})
	if err != nil {
		return nil, err
	}
	workloads, deployments, err := c.workloads(ctx)
	if err != nil {
		return nil, err
	}
	var pods []rotate.Pod
	for i := range found {
		if pod := &found[i]; pod.DeletionTimestamp == nil && readsRootCA(pod) {
			pods = append(pods, ownedPod(pod, workloads, deployments))
		}
	}
	return pods, nil
}

// readsRootCA reports whether a pod has a volume with the ConfigMap.
func readsRootCA(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
		if volume.ConfigMap != nil {
			return volume.ConfigMap.Name == rotate.RootCA
		}
		return volume.Projected != nil && slices.ContainsFunc(volume.Projected.Sources, func(source corev1.VolumeProjection) bool {
			return source.ConfigMap != nil && source.ConfigMap.Name == rotate.RootCA
		})
	})
}

// ownedPod returns what restarts a pod.
func ownedPod(pod *corev1.Pod, workloads map[rotate.Workload]restartable, deployments map[rotate.Workload]string) rotate.Pod {
	seen := rotate.Pod{Namespace: pod.Namespace, Name: pod.Name, Created: pod.CreationTimestamp.Time}
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		seen.Problem = "has no controller"
		return seen
	}
	if owner.Kind == "Job" {
		return seen
	}
	by := rotate.Workload{Kind: owner.Kind, Namespace: pod.Namespace, Name: owner.Name}
	if name, known := deployments[by]; known {
		by.Kind, by.Name = "Deployment", name
	}
	workload, known := workloads[by]
	switch {
	case !known:
		seen.Problem = fmt.Sprintf("is of %s %s", owner.Kind, owner.Name)
	case workload.problem != "":
		seen.Problem = workload.problem
	default:
		seen.Workload = by
	}
	return seen
}

// Restart implements kubernetes.
func (c *clients) Restart(ctx context.Context, workload rotate.Workload, since time.Time) error {
	annotations := map[string]any{"kubectl.kubernetes.io/restartedAt": since.UTC().Format(time.RFC3339)} // as kubectl rollout restart
	return c.ask(ctx, func(members *live.Cluster) error {
		return members.Patch(ctx, workloadsOf[workload.Kind], workload.Namespace, workload.Name, map[string]any{"spec": map[string]any{
			"template": map[string]any{"metadata": map[string]any{"annotations": annotations}},
		}})
	})
}

// Unfinished implements kubernetes.
func (c *clients) Unfinished(ctx context.Context, workload rotate.Workload) (string, error) {
	all, _, err := c.workloads(ctx)
	return all[workload].unfinished, err
}
