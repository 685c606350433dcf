package observe

import (
	"cmp"
	"context"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/handover"
	"github.com/slipway-platform/slipway/internal/health/kube"
	"github.com/slipway-platform/slipway/internal/redact"
)

// Handover reads what the checks of package handover judge. It only lists and watches objects.
type Handover struct {
	*store[handover.Cluster]
	Answerer

	spec *handover.Spec
}

// NewHandover returns a Handover that has read nothing yet.
func NewHandover(spec *handover.Spec, kube *Kube) *Handover {
	return &Handover{store: newStore[handover.Cluster](), Answerer: Answerer{kube: kube}, spec: spec}
}

// Evaluate judges what was read.
func (h *Handover) Evaluate() []health.Result {
	return h.evaluate(func(seen *handover.Cluster) []health.Result { return handover.Evaluate(h.spec, seen) })
}

// AppliedRevision returns the revision that the root Kustomization has applied, "" before.
func (h *Handover) AppliedRevision() (revision string) {
	h.read(func(seen *handover.Cluster) { revision = seen.AppliedRevision(h.spec) })
	return revision
}

// Watch reads until ctx ends, and returns when everything it started has ended.
func (h *Handover) Watch(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	watch := func(group, version, resource string, publish func(health.Seen[handover.Object])) {
		running.Go(func() {
			of := kind{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource}}
			watchAll(ctx, h.kube, of, plain(fluxObject), publish)
		})
	}
	place := func(where func(*handover.Cluster) *health.Seen[handover.Object]) func(health.Seen[handover.Object]) {
		return func(seen health.Seen[handover.Object]) {
			h.update(func(f *handover.Cluster) {
				*where(f) = seen
				f.Note(h.spec)
			})
		}
	}
	watch("fluxcd.controlplane.io", "v1", "fluxinstances",
		place(func(f *handover.Cluster) *health.Seen[handover.Object] { return &f.Instances }))
	watch("source.toolkit.fluxcd.io", "v1", "gitrepositories",
		place(func(f *handover.Cluster) *health.Seen[handover.Object] { return &f.GitSources }))
	watch("kustomize.toolkit.fluxcd.io", "v1", "kustomizations",
		place(func(f *handover.Cluster) *health.Seen[handover.Object] { return &f.Kustomizations }))
	watch("helm.toolkit.fluxcd.io", "v2", "helmreleases",
		place(func(f *handover.Cluster) *health.Seen[handover.Object] { return &f.HelmReleases }))
	h.watchWorkloads(ctx, &running)
	running.Go(func() { h.kube.watchReadiness(ctx, nil) }) // a watch alone does not notice that the server went away

	var mu sync.Mutex
	var helm, oci, buckets health.Seen[handover.Object]
	other := func(part *health.Seen[handover.Object]) func(health.Seen[handover.Object]) {
		return func(seen health.Seen[handover.Object]) {
			mu.Lock()
			defer mu.Unlock()
			*part = seen
			all := health.Seen[handover.Object]{Synced: true}
			for _, one := range []health.Seen[handover.Object]{helm, oci, buckets} {
				all.Synced, all.Items = all.Synced && one.Synced, append(all.Items, one.Items...)
				if all.Err == nil {
					all.Err = one.Err
				}
			}
			h.update(func(f *handover.Cluster) {
				f.OtherSources = all
				f.Note(h.spec)
			})
		}
	}
	watch("source.toolkit.fluxcd.io", "v1", "helmrepositories", other(&helm))
	watch("source.toolkit.fluxcd.io", "v1", "ocirepositories", other(&oci))
	watch("source.toolkit.fluxcd.io", "v1", "buckets", other(&buckets))
}

// watchWorkloads reads what runs in the cluster: a Kustomization that is not Ready may wait for any of it.
func (h *Handover) watchWorkloads(ctx context.Context, running *sync.WaitGroup) {
	var mu sync.Mutex
	kinds := map[string]health.Seen[kube.Workload]{}
	for _, name := range kube.Kinds {
		running.Go(func() {
			watchAll(ctx, h.kube, kind{GroupVersionResource: workloadKinds[name]}, plain(workload), func(seen health.Seen[kube.Workload]) {
				mu.Lock()
				defer mu.Unlock()
				kinds[name] = seen
				all := health.Seen[kube.Workload]{Synced: true}
				for _, name := range kube.Kinds {
					one := kinds[name]
					all.Synced, all.Items = all.Synced && one.Synced, append(all.Items, one.Items...)
					if all.Err == nil {
						all.Err = one.Err
					}
				}
				h.update(func(f *handover.Cluster) { f.Workloads = all })
			})
		})
	}
	running.Go(func() {
		watchAll(ctx, h.kube, kind{GroupVersionResource: podsKind}, kubePod,
			into(h.store, func(f *handover.Cluster) *health.Seen[kube.Pod] { return &f.Pods }))
	})
}

func fluxObject(object *unstructured.Unstructured) (handover.Object, error) {
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(object.Object, path...)
		return value
	}
	seen := handover.Object{
		Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
		URL: text("spec", "url"), Path: text("spec", "path"), Ref: gitRef(text),
	}
	switch seen.Kind {
	case handover.OCIRepository:
		seen.Ref = text("spec", "ref", "tag")
	case handover.Bucket:
		seen.URL, seen.Ref = text("spec", "endpoint"), text("spec", "bucketName")
	}
	seen.Suspended, _, _ = unstructured.NestedBool(object.Object, "spec", "suspend")
	if labels := object.GetLabels(); labels["kustomize.toolkit.fluxcd.io/name"] != "" {
		seen.Owner = labels["kustomize.toolkit.fluxcd.io/namespace"] + "/" + labels["kustomize.toolkit.fluxcd.io/name"]
	}
	if seen.Revision = text("status", "artifact", "revision"); seen.Revision == "" {
		seen.Revision = text("status", "lastAppliedRevision")
	}
	if name := text("spec", "sourceRef", "name"); name != "" {
		namespace := text("spec", "sourceRef", "namespace")
		if namespace == "" {
			namespace = seen.Namespace
		}
		seen.Source = text("spec", "sourceRef", "kind") + " " + namespace + "/" + name
	}
	seen.DependsOn = dependencies(object)
	observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	reconciling := ""
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, entry := range conditions {
		condition, _ := entry.(map[string]any)
		message, _ := condition["message"].(string)
		message = redact.Line(strings.Join(strings.Fields(message), " "))
		if condition["type"] == "Reconciling" && condition["status"] == "True" {
			reconciling = message
		}
		if condition["type"] != "Ready" {
			continue
		}
		seen.Ready, _ = condition["status"].(string)
		seen.Reason, _ = condition["reason"].(string)
		seen.Message = message
		if generation, ok := condition["observedGeneration"].(int64); ok {
			observed = max(observed, generation)
		}
	}
	if seen.Ready == "Unknown" && reconciling != "" {
		seen.Message = reconciling // says what is being done, not only that something is
	}
	request := object.GetAnnotations()["reconcile.fluxcd.io/requestedAt"]
	handled := request == "" || request == text("status", "lastHandledReconcileAt")
	seen.Current = handled && (observed >= object.GetGeneration() || observed == 0 && seen.Ready != "")
	if seen.Kind == "HelmRepository" && text("spec", "type") == "oci" {
		// No controller sets conditions of such a repository: it only has a URL that HelmReleases refer to.
		seen.Current, seen.Ready = true, "True"
	}
	entries, _, _ := unstructured.NestedSlice(object.Object, "status", "inventory", "entries")
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		id, _ := fields["id"].(string)
		if title := inventoryTitle(id); title != "" {
			seen.Inventory = append(seen.Inventory, title)
		}
		if parts := strings.Split(id, "_"); len(parts) == 4 && parts[2] == "apps" && workloadKinds[parts[3]].Resource != "" {
			seen.Workloads = append(seen.Workloads, parts[3]+" "+parts[0]+"/"+parts[1])
		}
	}
	return seen, nil
}

// dependencies returns the titles of what an object declares as its dependencies, which are of its own kind.
func dependencies(object *unstructured.Unstructured) (titles []string) {
	entries, _, _ := unstructured.NestedSlice(object.Object, "spec", "dependsOn")
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		name, _ := fields["name"].(string)
		namespace, _ := fields["namespace"].(string)
		titles = append(titles, object.GetKind()+" "+cmp.Or(namespace, object.GetNamespace())+"/"+name)
	}
	return titles
}

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
	}
	if group, known := watched[parts[3]]; !known || group != parts[2] {
		return ""
	}
	return parts[3] + " " + parts[0] + "/" + parts[1]
}
