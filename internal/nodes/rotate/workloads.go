package rotate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/nodes/live"
)

// objects returns the objects of a resource, of all namespaces.
func objects[T any](
	ctx context.Context, c kubernetesClients, of schema.GroupVersionResource, options metav1.ListOptions,
) ([]T, error) {
	return ofMembers(ctx, c.clients, func(members *live.Cluster) ([]T, error) { return live.List[T](ctx, members, of, options) })
}

// Roots implements kubernetes.
func (c kubernetesClients) Roots(ctx context.Context) ([]Root, error) {
	namespaces, err := objects[corev1.Namespace](ctx, c, kubeapi.Namespaces, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	maps, err := objects[corev1.ConfigMap](ctx, c, kubeapi.ConfigMaps, metav1.ListOptions{FieldSelector: "metadata.name=" + RootCA})
	if err != nil {
		return nil, err
	}
	var roots []Root
	for _, namespace := range namespaces {
		if namespace.DeletionTimestamp != nil || namespace.Status.Phase == corev1.NamespaceTerminating {
			continue
		}
		root := Root{Namespace: namespace.Name}
		for _, one := range maps {
			if one.Namespace != namespace.Name {
				continue
			}
			root.UID, root.Certificates, root.Kept = string(one.UID), Split(one.Data["ca.crt"]), one.Immutable != nil && *one.Immutable
			for _, entry := range one.ManagedFields {
				if entry.Manager == kubeapi.FieldManager && entry.Time != nil {
					root.Since = entry.Time.Time
				}
			}
		}
		roots = append(roots, root)
	}
	return roots, nil
}

// Keep implements kubernetes.
func (c kubernetesClients) Keep(ctx context.Context, root Root, certificates string) error {
	return c.ask(ctx, func(members *live.Cluster) error {
		return members.Patch(ctx, kubeapi.ConfigMaps, root.Namespace, RootCA, map[string]any{
			"data": map[string]any{"ca.crt": certificates}, "immutable": true, "metadata": map[string]any{"uid": root.UID},
		})
	})
}

// Release implements kubernetes.
func (c kubernetesClients) Release(ctx context.Context, root Root) error {
	return c.ask(ctx, func(members *live.Cluster) error {
		return members.Delete(ctx, kubeapi.ConfigMaps, root.Namespace, RootCA, types.UID(root.UID))
	})
}

// restartable is what a run needs of a workload.
type restartable struct {
	problem string // why a change of its template does not restart all pods; "" if it does
	rollout
}

// onDelete and partition are the problems of update strategies.
const (
	onDelete  = "with the update strategy OnDelete"
	partition = "with a partition in its update strategy"
)

func ofDeployment(one *appsv1.Deployment) restartable {
	s := one.Status
	r := of(one.Spec.Template, one.Generation, s.ObservedGeneration,
		counts{replicas(one.Spec.Replicas), s.UpdatedReplicas, s.Replicas, s.AvailableReplicas})
	if one.Spec.Paused {
		r.problem = "that is paused"
	}
	return r
}

func ofDaemonSet(one *appsv1.DaemonSet) restartable {
	s := one.Status
	r := of(one.Spec.Template, one.Generation, s.ObservedGeneration,
		counts{s.DesiredNumberScheduled, s.UpdatedNumberScheduled, s.CurrentNumberScheduled, s.NumberAvailable})
	if one.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		r.problem = onDelete
	}
	return r
}

func ofStatefulSet(one *appsv1.StatefulSet) restartable {
	s := one.Status
	r := of(one.Spec.Template, one.Generation, s.ObservedGeneration,
		counts{replicas(one.Spec.Replicas), s.UpdatedReplicas, s.Replicas, s.AvailableReplicas})
	switch rolling := one.Spec.UpdateStrategy.RollingUpdate; {
	case one.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType:
		r.problem = onDelete
	case rolling != nil && rolling.Partition != nil && *rolling.Partition > 0:
		r.problem = partition
	}
	return r
}

// of returns how far a workload is rolled out.
func of(template corev1.PodTemplateSpec, generation, observed int64, pods counts) restartable {
	r := rollout{
		missing: pods.unfinished(), progress: pods.progress(), available: pods.available, wanted: pods.wanted,
		restarted: restartOf(template.Annotations),
	}
	if observed < generation { // the numbers are of the former template
		r.missing, r.progress = "its controller has not seen the change", 0
	}
	return restartable{rollout: r}
}

// counts are numbers of a workload's pods.
type counts struct{ wanted, updated, all, available int32 }

// unfinished says what is missing until all pods are of the newest version.
func (c counts) unfinished() string {
	if c.updated < c.wanted || c.all > c.updated {
		return fmt.Sprintf("%d of %d pods are new ones", c.updated, max(c.wanted, c.all))
	}
	return ""
}

// progress returns the number of new pods, and of declared ones in whose place no former one is left.
func (c counts) progress() int32 { return c.updated + max(0, c.wanted-(c.all-c.updated)) }

// workloads returns the workloads of a kind.
func (c kubernetesClients) workloads(ctx context.Context, kind string, options metav1.ListOptions) (map[Workload]restartable, error) {
	switch kind {
	case "Deployment":
		return workloadsBy(ctx, c, kind, options, ofDeployment)
	case "DaemonSet":
		return workloadsBy(ctx, c, kind, options, ofDaemonSet)
	}
	return workloadsBy(ctx, c, kind, options, ofStatefulSet)
}

func workloadsBy[T any, P interface {
	*T
	metav1.Object
}](
	ctx context.Context, c kubernetesClients, kind string, options metav1.ListOptions, read func(P) restartable,
) (map[Workload]restartable, error) {
	found, err := objects[T](ctx, c, kubeapi.Workloads[kind], options)
	all := map[Workload]restartable{}
	for i := range found {
		one := P(&found[i])
		all[Workload{Kind: kind, Namespace: one.GetNamespace(), Name: one.GetName()}] = read(one)
	}
	return all, err
}

// deployments returns the names of the Deployments of ReplicaSets.
func (c kubernetesClients) deployments(ctx context.Context) (map[Workload]string, error) {
	replicaSets, err := objects[appsv1.ReplicaSet](ctx, c, kubeapi.ReplicaSets, metav1.ListOptions{})
	names := map[Workload]string{}
	for i := range replicaSets {
		if owner := metav1.GetControllerOf(&replicaSets[i]); owner != nil && owner.Kind == "Deployment" {
			names[Workload{Kind: "ReplicaSet", Namespace: replicaSets[i].Namespace, Name: replicaSets[i].Name}] = owner.Name
		}
	}
	return names, err
}

func replicas(declared *int32) int32 {
	if declared == nil {
		return 1
	}
	return *declared
}

// Pods implements kubernetes.
func (c kubernetesClients) Pods(ctx context.Context) ([]Pod, error) {
	found, err := objects[corev1.Pod](ctx, c, kubeapi.Pods, metav1.ListOptions{
		FieldSelector: "status.phase!=Succeeded,status.phase!=Failed",
	})
	if err != nil {
		return nil, err
	}
	deployments, err := c.deployments(ctx)
	if err != nil {
		return nil, err
	}
	workloads := map[Workload]restartable{}
	for kind := range kubeapi.Workloads {
		some, err := c.workloads(ctx, kind, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		maps.Copy(workloads, some)
	}
	var pods []Pod
	for i := range found {
		if pod := &found[i]; runs(pod, time.Now()) && readsRootCA(pod) {
			pods = append(pods, ownedPod(pod, workloads, deployments))
		}
	}
	return pods, nil
}

// runs reports whether a pod's containers may run. A pod that no node has yet has read nothing. One that is being deleted may run until its
// grace period is over.
func runs(pod *corev1.Pod, now time.Time) bool {
	return pod.Spec.NodeName != "" && (pod.DeletionTimestamp == nil || pod.DeletionTimestamp.After(now))
}

// readsRootCA reports whether a pod has a volume with the ConfigMap.
func readsRootCA(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
		if volume.ConfigMap != nil {
			return volume.ConfigMap.Name == RootCA
		}
		return volume.Projected != nil && slices.ContainsFunc(volume.Projected.Sources, func(source corev1.VolumeProjection) bool {
			return source.ConfigMap != nil && source.ConfigMap.Name == RootCA
		})
	})
}

// ownedPod returns what restarts a pod.
func ownedPod(pod *corev1.Pod, workloads map[Workload]restartable, deployments map[Workload]string) Pod {
	seen := Pod{
		Namespace: pod.Namespace, Name: pod.Name, Created: pod.CreationTimestamp.Time, Restarted: restartOf(pod.Annotations),
	}
	owner := metav1.GetControllerOf(pod)
	switch {
	case pod.DeletionTimestamp != nil || owner != nil && owner.Kind == "Job":
		return seen
	case owner == nil:
		seen.Problem = "has no controller"
		return seen
	}
	by := Workload{Kind: owner.Kind, Namespace: pod.Namespace, Name: owner.Name}
	if name, known := deployments[by]; known {
		by.Kind, by.Name = "Deployment", name
	}
	workload, known := workloads[by]
	switch {
	case !known:
		seen.Problem = fmt.Sprintf("is of %s %s", owner.Kind, owner.Name)
	case workload.problem != "":
		seen.Problem = fmt.Sprintf("is of a %s %s", by.Kind, workload.problem)
	default:
		seen.Workload = by
	}
	return seen
}

// restartedAt is the annotation by which kubectl rollout restart changes a template. Pods inherit it.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// restartOf returns the time of the annotation; zero without one.
func restartOf(annotations map[string]string) time.Time {
	at, _ := time.Parse(time.RFC3339, annotations[restartedAt]) // the zero time after an error
	return at
}

// Restart implements kubernetes.
func (c kubernetesClients) Restart(ctx context.Context, workload Workload, since time.Time) error {
	annotations := map[string]any{restartedAt: since.UTC().Format(time.RFC3339)}
	return c.ask(ctx, func(members *live.Cluster) error {
		return members.Patch(ctx, kubeapi.Workloads[workload.Kind], workload.Namespace, workload.Name, map[string]any{"spec": map[string]any{
			"template": map[string]any{"metadata": map[string]any{"annotations": annotations}},
		}})
	})
}

// Rollout implements kubernetes.
func (c kubernetesClients) Rollout(ctx context.Context, workload Workload) (rollout, error) {
	all, err := c.workloads(ctx, workload.Kind, metav1.ListOptions{
		FieldSelector: "metadata.namespace=" + workload.Namespace + ",metadata.name=" + workload.Name,
	})
	one, found := all[workload]
	one.gone = err == nil && !found
	return one.rollout, err
}
