package observe

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/slipway-platform/slipway/internal/health"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Flux keeps in store what the checks of a handover read, until ctx ends. It returns when everything it started has ended.
func Flux(ctx context.Context, kube *Kube, store *Store[health.Flux]) {
	var running sync.WaitGroup
	defer running.Wait()
	watch := func(group, version, resource string, publish func(health.Seen[health.FluxObject])) {
		running.Go(func() {
			kind := Kind{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource}}
			Watch(ctx, kube, kind, plain(fluxObject), publish)
		})
	}
	place := func(where func(*health.Flux) *health.Seen[health.FluxObject]) func(health.Seen[health.FluxObject]) {
		return into(store, where)
	}
	watch("fluxcd.controlplane.io", "v1", "fluxinstances", place(func(f *health.Flux) *health.Seen[health.FluxObject] { return &f.Instances }))
	watch("source.toolkit.fluxcd.io", "v1", "gitrepositories", place(func(f *health.Flux) *health.Seen[health.FluxObject] { return &f.GitSources }))
	watch("kustomize.toolkit.fluxcd.io", "v1", "kustomizations", place(func(f *health.Flux) *health.Seen[health.FluxObject] { return &f.Kustomizations }))
	watch("helm.toolkit.fluxcd.io", "v2", "helmreleases", place(func(f *health.Flux) *health.Seen[health.FluxObject] { return &f.HelmReleases }))
	// The silent end of a server's connections is noticed by asking it.
	running.Go(func() { kube.WatchReadiness(ctx, func(health.APIServer) {}) })

	var mu sync.Mutex
	var helm, oci health.Seen[health.FluxObject]
	other := func(part *health.Seen[health.FluxObject]) func(health.Seen[health.FluxObject]) {
		return func(seen health.Seen[health.FluxObject]) {
			mu.Lock()
			defer mu.Unlock()
			*part = seen
			all := health.Seen[health.FluxObject]{Synced: helm.Synced && oci.Synced, Err: helm.Err, Items: slices.Concat(helm.Items, oci.Items)}
			if all.Err == nil {
				all.Err = oci.Err
			}
			store.Update(func(f *health.Flux) { f.OtherSources = all })
		}
	}
	watch("source.toolkit.fluxcd.io", "v1", "helmrepositories", other(&helm))
	watch("source.toolkit.fluxcd.io", "v1", "ocirepositories", other(&oci))
}

func fluxObject(object *unstructured.Unstructured) (health.FluxObject, error) {
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(object.Object, path...)
		return value
	}
	seen := health.FluxObject{
		Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
		URL: text("spec", "url"), Path: text("spec", "path"), Ref: gitRef(text),
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
	observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, entry := range conditions {
		condition, _ := entry.(map[string]any)
		if condition["type"] != "Ready" {
			continue
		}
		seen.Ready, _ = condition["status"].(string)
		seen.Reason, _ = condition["reason"].(string)
		seen.Message, _ = condition["message"].(string)
		if generation, ok := condition["observedGeneration"].(int64); ok {
			observed = max(observed, generation)
		}
	}
	seen.Current = observed >= object.GetGeneration() || observed == 0 && seen.Ready != ""
	if seen.Kind == "HelmRepository" && text("spec", "type") == "oci" {
		// Such a repository is only a name for others to refer to: no controller gives it a condition.
		seen.Current, seen.Ready = true, "True"
	}
	entries, _, _ := unstructured.NestedSlice(object.Object, "status", "inventory", "entries")
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		id, _ := fields["id"].(string)
		if title := inventoryTitle(id); title != "" {
			seen.Inventory = append(seen.Inventory, title)
		}
	}
	return seen, nil
}

// gitRef is what a GitRepository follows, as a full reference, tag or commit.
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

// inventoryTitle reads an inventory id, namespace_name_group_kind. Objects of other groups than Flux's own are left to Flux: it waits
// for them itself where a Kustomization says so.
func inventoryTitle(id string) string {
	parts := strings.Split(id, "_")
	if len(parts) != 4 {
		return ""
	}
	watched := map[string]string{
		"Kustomization": "kustomize.toolkit.fluxcd.io", "HelmRelease": "helm.toolkit.fluxcd.io", "GitRepository": "source.toolkit.fluxcd.io",
		"HelmRepository": "source.toolkit.fluxcd.io", "OCIRepository": "source.toolkit.fluxcd.io",
	}
	if group, known := watched[parts[3]]; !known || group != parts[2] {
		return ""
	}
	return parts[3] + " " + parts[0] + "/" + parts[1]
}
