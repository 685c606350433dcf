package observe

import (
	"cmp"
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/cluster/secrecy"
	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/engines/flux/handover"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

// Handover reads what the checks of package handover judge. It only lists and watches objects.
type Handover struct {
	*observer[handover.Spec, handover.Cluster]
}

// NewHandover returns a Handover that has read nothing yet.
func NewHandover(spec *handover.Spec, kube *Kube) *Handover {
	return &Handover{newObserver(spec, kube, handover.Evaluate)}
}

// AppliedRevision returns the revision that the root Kustomization has applied, "" before.
func (h *Handover) AppliedRevision() (revision string) {
	h.read(func(seen *handover.Cluster) { revision = seen.AppliedRevision(h.spec) })
	return revision
}

// Watch reads until ctx ends, and returns when everything it started has ended.
func (h *Handover) Watch(ctx context.Context) {
	w := h.watches(ctx)
	defer w.Wait()
	type objects = health.Seen[handover.Object]
	watch := func(group, version, resource string, store func(*handover.Cluster, objects)) {
		of := kind{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource}}
		follow(w, of, plain(fluxObject), func(f *handover.Cluster, seen objects) {
			store(f, seen)
			f.Note(h.spec)
		})
	}
	watch("fluxcd.controlplane.io", "v1", "fluxinstances", func(f *handover.Cluster, seen objects) { f.Instances = seen })
	watch("source.toolkit.fluxcd.io", "v1", "gitrepositories", func(f *handover.Cluster, seen objects) { f.GitSources = seen })
	watch("kustomize.toolkit.fluxcd.io", "v1", "kustomizations", func(f *handover.Cluster, seen objects) { f.Kustomizations = seen })
	watch("helm.toolkit.fluxcd.io", "v2", "helmreleases", func(f *handover.Cluster, seen objects) { f.HelmReleases = seen })
	watch("fluxcd.controlplane.io", "v1", "resourcesets", func(f *handover.Cluster, seen objects) {
		if f.ResourceSets = seen; seen.Err != nil && seen.Err.Unknown { // flux-operator brings the kind, and need not
			f.ResourceSets = objects{Synced: true}
		}
	})
	others := make([]objects, 3)
	for i, resource := range []string{"helmrepositories", "ocirepositories", "buckets"} {
		watch("source.toolkit.fluxcd.io", "v1", resource, func(f *handover.Cluster, seen objects) {
			others[i] = seen
			f.OtherSources = joined(others)
		})
	}
	// All objects that a Kustomization may wait for are read.
	keepWorkloads(w, func(f *handover.Cluster) (*health.Seen[kube.Workload], *health.Seen[kube.Pod]) {
		return &f.Workloads, &f.Pods
	})
}

// keepWorkloads watches the workloads and pods of all namespaces, and stores them at the places.
func keepWorkloads[C any](w *watches[C], places func(*C) (*health.Seen[kube.Workload], *health.Seen[kube.Pod])) {
	sets := make([]health.Seen[kube.Workload], len(kube.Kinds))
	for i, name := range kube.Kinds {
		follow(w, kind{GroupVersionResource: kubeapi.Workloads[name]}, plain(workload), func(c *C, seen health.Seen[kube.Workload]) {
			workloads, _ := places(c)
			sets[i] = seen
			*workloads = joined(sets)
		})
	}
	keep(w, kind{GroupVersionResource: kubeapi.Pods}, kubePod, func(c *C) *health.Seen[kube.Pod] {
		_, pods := places(c)
		return pods
	})
}

// joined returns all objects of several kinds, which have been read if each kind has.
func joined[T any](kinds []health.Seen[T]) health.Seen[T] {
	all := health.Seen[T]{Synced: true}
	for _, one := range kinds {
		all.Synced, all.Err, all.Items = all.Synced && one.Synced, cmp.Or(all.Err, one.Err), append(all.Items, one.Items...)
	}
	return all
}

func fluxObject(object *unstructured.Unstructured) (handover.Object, error) {
	text := func(path ...string) string { return textAt(object.Object, path...) }
	seen := handover.Object{
		Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
		URL: text("spec", "url"), Path: text("spec", "path"), Ref: gitRef(text), Deleting: object.GetDeletionTimestamp() != nil,
	}
	switch seen.Kind {
	case handover.OCIRepository:
		seen.Ref = text("spec", "ref", "tag")
	case handover.Bucket:
		seen.URL, seen.Ref = text("spec", "endpoint"), text("spec", "bucketName")
	}
	seen.Suspended, _, _ = unstructured.NestedBool(object.Object, "spec", "suspend")
	if strings.HasPrefix(object.GetAPIVersion(), "fluxcd.controlplane.io/") {
		seen.Suspended = strings.EqualFold(object.GetAnnotations()["fluxcd.controlplane.io/reconcile"], "disabled")
	}
	switch labels := object.GetLabels(); {
	case labels["kustomize.toolkit.fluxcd.io/name"] != "":
		seen.Owner = labels["kustomize.toolkit.fluxcd.io/namespace"] + "/" + labels["kustomize.toolkit.fluxcd.io/name"]
	case labels["resourceset.fluxcd.controlplane.io/name"] != "":
		seen.Owner = handover.ResourceSet + " " + labels["resourceset.fluxcd.controlplane.io/namespace"] + "/" +
			labels["resourceset.fluxcd.controlplane.io/name"]
	}
	seen.Revision = cmp.Or(text("status", "artifact", "revision"), text("status", "lastAppliedRevision"))
	if name := text("spec", "sourceRef", "name"); name != "" {
		seen.Source = text("spec", "sourceRef", "kind") + " " + cmp.Or(text("spec", "sourceRef", "namespace"), seen.Namespace) + "/" + name
	}
	seen.DependsOn = dependencies(object)
	ready, reconciling := kubeapi.ConditionOf(object.Object, "Ready"), kubeapi.ConditionOf(object.Object, "Reconciling")
	seen.Ready, seen.Reason, seen.Message = ready.Status, ready.Reason, oneLine(ready.Message)
	if seen.Ready == "Unknown" && reconciling.Status == "True" && reconciling.Message != "" {
		seen.Message = oneLine(reconciling.Message) // says what is being done, not only that something is
	}
	observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	observed = max(observed, ready.Generation)
	request := object.GetAnnotations()["reconcile.fluxcd.io/requestedAt"]
	handled := request == "" || request == text("status", "lastHandledReconcileAt")
	seen.Current = handled && (observed >= object.GetGeneration() || observed == 0 && seen.Ready != "")
	if seen.Kind == "HelmRepository" && text("spec", "type") == "oci" {
		// No controller sets conditions of such a repository: it only has a URL that HelmReleases refer to.
		seen.Current, seen.Ready = true, "True"
	}
	for _, entry := range kubeapi.Entries(object.Object, "status", "inventory", "entries") {
		id, _ := entry["id"].(string)
		if title := inventoryTitle(id); title != "" {
			seen.Inventory = append(seen.Inventory, title)
		}
		if parts := strings.Split(id, "_"); len(parts) == 4 && parts[2] == "apps" && kubeapi.Workloads[parts[3]].Resource != "" {
			seen.Workloads = append(seen.Workloads, parts[3]+" "+parts[0]+"/"+parts[1])
		}
	}
	return seen, nil
}

// dependencies returns the titles of an object's declared dependencies, which are of its own kind.
func dependencies(object *unstructured.Unstructured) (titles []string) {
	for _, entry := range kubeapi.Entries(object.Object, "spec", "dependsOn") {
		namespace := cmp.Or(textAt(entry, "namespace"), object.GetNamespace())
		titles = append(titles, object.GetKind()+" "+namespace+"/"+textAt(entry, "name"))
	}
	return titles
}

// oneLine returns a message without line breaks and without anything that may be a secret.
func oneLine(message string) string { return secrecy.Line(strings.Join(strings.Fields(message), " ")) }

// gitRef returns the full reference that a GitRepository follows.
func gitRef(text func(...string) string) string {
	if name := text("spec", "ref", "name"); name != "" {
		return name
	}
	if branch := text("spec", "ref", "branch"); branch != "" {
		return "refs/heads/" + branch
	}
	if tag := text("spec", "ref", "tag"); tag != "" {
		return "refs/tags/" + tag
	}
	return ""
}

// inventoryTitle returns "Kind namespace/name" of an inventory id, namespace_name_group_kind, and "" for kinds that are not Flux's: Flux
// itself waits for those, if the Kustomization says so.
func inventoryTitle(id string) string {
	parts := strings.Split(id, "_")
	if len(parts) != 4 {
		return ""
	}
	watched := map[string]string{
		"Kustomization": "kustomize.toolkit.fluxcd.io", "HelmRelease": "helm.toolkit.fluxcd.io", "GitRepository": "source.toolkit.fluxcd.io",
		"HelmRepository": "source.toolkit.fluxcd.io", "OCIRepository": "source.toolkit.fluxcd.io", "Bucket": "source.toolkit.fluxcd.io",
		handover.ResourceSet: "fluxcd.controlplane.io",
	}
	if group, known := watched[parts[3]]; !known || group != parts[2] {
		return ""
	}
	return parts[3] + " " + parts[0] + "/" + parts[1]
}
