package kubeapi

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// Resources of Kubernetes itself.
var (
	ConfigMaps   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	Events       = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	Namespaces   = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	Nodes        = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	Pods         = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	Secrets      = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	Services     = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	DaemonSets   = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
	Deployments  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	ReplicaSets  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	StatefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	ServiceCIDRs = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "servicecidrs"}
)

// Workloads are the resources of the kinds that run pods, by kind.
var Workloads = map[string]schema.GroupVersionResource{"Deployment": Deployments, "StatefulSet": StatefulSets, "DaemonSet": DaemonSets}

// Typed reads an object into the type of its kind.
func Typed[T any](object *unstructured.Unstructured) (T, error) {
	var into T
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &into)
	return into, err
}

// Merge changes an object by a merge patch, and returns the changed object.
func Merge(
	ctx context.Context, objects dynamic.ResourceInterface, name string, change map[string]any,
) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	return objects.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: FieldManager})
}

// PodReady reports whether a pod has the condition Ready.
func PodReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Condition is a condition in the status of an object.
type Condition struct {
	Type, Status, Reason, Message string
	Generation                    int64 // of the object that it is about; 0 if unknown
}

// ConditionOf returns a condition of an object; the zero value if it has none of the type.
func ConditionOf(object map[string]any, of string) Condition {
	for _, entry := range Entries(object, "status", "conditions") {
		if entry["type"] == of {
			found := Condition{Type: of}
			found.Status, _ = entry["status"].(string)
			found.Reason, _ = entry["reason"].(string)
			found.Message, _ = entry["message"].(string)
			found.Generation, _ = entry["observedGeneration"].(int64)
			return found
		}
	}
	return Condition{}
}

// Entries returns a list of an object whose entries are objects.
func Entries(object map[string]any, path ...string) (all []map[string]any) {
	list, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	entries, _ := list.([]any)
	for _, entry := range entries {
		if fields, is := entry.(map[string]any); is {
			all = append(all, fields)
		}
	}
	return all
}
