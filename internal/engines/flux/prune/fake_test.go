package prune

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/tests/fakes/enginestest"
	"github.com/slipway-platform/slipway/tests/fakes/kubeapitest"
)

// Resources that the fake serves. A Deployment stands for what Flux applies and does not wait for.
const (
	fluxInstances  = "fluxcd.controlplane.io/v1/fluxinstances"
	resourceSets   = "fluxcd.controlplane.io/v1/resourcesets"
	kustomizations = "kustomize.toolkit.fluxcd.io/v1/kustomizations"
	helmReleases   = "helm.toolkit.fluxcd.io/v2/helmreleases"
	deployments    = "apps/v1/deployments"
)

var byKind = map[string]string{
	"FluxInstance": fluxInstances, "ResourceSet": resourceSets, "Kustomization": kustomizations, "HelmRelease": helmReleases,
	"Deployment": deployments,
}

// api is an API server with Flux's controllers and flux-operator, as far as they take part in a removal. The controllers work once before
// each list of Kustomizations and remove one level of owners each time. It models neither sources, conflicts nor the Helm release below a
// HelmRelease.
type api struct {
	// stuck, by "Kind namespace/name", are objects whose controller does not finish their removal. The value is the message of its Ready
	// condition then.
	stuck map[string]string
	// onRequest, if non-nil, is called with "VERB resource" before each request; true answers it with an internal error.
	onRequest func(request string) bool

	mu sync.Mutex
	enginestest.Store
	requests []string // those that change something, in order
	made     int      // how often flux-operator has made the root
}

func newAPI() *api { return &api{stuck: map[string]string{}, Store: enginestest.NewStore(byKind)} }

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	resource, _, name := enginestest.Split(r.URL.Path)
	if a.onRequest != nil && a.onRequest(r.Method+" "+resource) {
		kubeapitest.Refuse(w, http.StatusInternalServerError, "InternalError")
		return
	}
	if name == "" && resource == kustomizations {
		a.reconcile()
	}
	object := a.Find(w, r)
	switch {
	case object == nil:
		return
	case r.Method == http.MethodDelete:
		a.requests = append(a.requests, "DELETE "+enginestest.Title(object))
		a.delete(object)
	case r.Method == http.MethodPatch:
		var change map[string]any
		_ = json.NewDecoder(r.Body).Decode(&change)
		text, _ := json.Marshal(change)
		a.requests = append(a.requests, "PATCH "+enginestest.Title(object)+" "+string(text))
		kubeapitest.Merge(object.Object, change)
		a.operate()
	}
	_ = json.NewEncoder(w).Encode(object)
}

// delete deletes an object: at once, or with its finalizer if a controller of Flux works on it.
func (a *api) delete(o *unstructured.Unstructured) {
	if o.GetKind() == "Deployment" {
		a.Drop(o)
		return
	}
	if o.GetDeletionTimestamp() == nil {
		unstructured.SetNestedField(o.Object, time.Now().UTC().Format(time.RFC3339), "metadata", "deletionTimestamp") //nolint:errcheck // a map
	}
	if message := a.stuck[enginestest.Title(o)]; message != "" {
		_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{"type": "Ready", "status": "False", "reason": "UninstallFailed",
			"message": message}}, "status", "conditions")
	}
}

// reconcile lets Flux's controllers finalize what is being deleted, as their sources do it.
func (a *api) reconcile() {
	var deleting []*unstructured.Unstructured
	for _, resource := range []string{kustomizations, helmReleases, resourceSets} {
		for _, o := range a.Objects[resource] {
			if o.GetDeletionTimestamp() != nil && a.stuck[enginestest.Title(o)] == "" {
				deleting = append(deleting, o)
			}
		}
	}
	for _, o := range deleting {
		suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend")
		prune, _, _ := unstructured.NestedBool(o.Object, "spec", "prune")
		policy, _, _ := unstructured.NestedString(o.Object, "spec", "deletionPolicy")
		inventory, _, _ := unstructured.NestedSlice(o.Object, "status", "inventory", "entries")
		label, mark := "kustomize.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io/prune"
		removes := !suspended && len(inventory) > 0 && (prune && (policy == "" || policy == "MirrorPrune") || policy == "Delete")
		switch o.GetKind() {
		case "HelmRelease":
			label, mark, removes = "helm.toolkit.fluxcd.io", "helm.sh/resource-policy", !suspended
		case "ResourceSet":
			label, mark = "resourceset.fluxcd.controlplane.io", "fluxcd.controlplane.io/prune"
			removes = len(inventory) > 0 && o.GetAnnotations()[reconcileAnnotation] != disabled
		}
		for _, resource := range byKind {
			for _, applied := range a.Objects[resource] {
				labels := applied.GetLabels()
				if removes && labels[label+"/name"] == o.GetName() && labels[label+"/namespace"] == o.GetNamespace() &&
					applied.GetAnnotations()[mark] == "" {
					a.delete(applied)
				}
			}
		}
		a.Drop(o)
	}
}

// operate lets flux-operator make the root, unless the FluxInstance is suspended or has no sync.
func (a *api) operate() {
	instance := a.Objects[fluxInstances]["flux-system/flux"]
	_, syncs, _ := unstructured.NestedMap(instance.Object, "spec", "sync")
	if strings.EqualFold(instance.GetAnnotations()[reconcileAnnotation], disabled) || !syncs ||
		a.Objects[kustomizations]["flux-system/flux-system"] != nil {
		return
	}
	a.made++
	a.Keep(a.Decode(`{kind: Kustomization, metadata: {name: flux-system, namespace: flux-system}, spec: {prune: true}}`))
}

// put adds an object, or replaces it.
func (a *api) put(object string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Keep(a.Decode(object))
}

// exists returns the titles of all objects, sorted.
func (a *api) exists() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Titles()
}

func (a *api) instance() *unstructured.Unstructured {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Objects[fluxInstances]["flux-system/flux"].DeepCopy()
}

// inventory is the status of a Kustomization or ResourceSet that has applied something. Flux goes by its entries; the fake by the labels.
const inventory = `status: {inventory: {entries: [{id: x, v: v1}]}}`

// by returns the labels of an object that a Kustomization of flux-system has applied.
func by(name string) string {
	return fmt.Sprintf(`labels: {kustomize.toolkit.fluxcd.io/name: %s, kustomize.toolkit.fluxcd.io/namespace: flux-system}`, name)
}

// fixture is a run against a fake cluster: the root has applied the Kustomization apps, and that the HelmRelease web and a Deployment.
type fixture struct {
	*run
	api      *api
	progress *strings.Builder
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{api: newAPI(), progress: &strings.Builder{}}
	f.api.put(`{kind: FluxInstance, metadata: {name: flux, namespace: flux-system, annotations: {slipway-platform.github.io/cluster: infra}},
  spec: {sync: {name: flux-system}}}`)
	f.api.put(`{kind: Kustomization, metadata: {name: flux-system, namespace: flux-system}, spec: {prune: true}, ` + inventory + `}`)
	f.api.put(`{kind: Kustomization, metadata: {name: apps, namespace: flux-system, ` + by("flux-system") + `}, spec: {prune: true}, ` +
		inventory + `}`)
	f.api.put(`{kind: HelmRelease, metadata: {name: web, namespace: web, ` + by("apps") + `}, spec: {}}`)
	f.api.put(`{kind: Deployment, metadata: {name: api, namespace: web, ` + by("apps") + `}}`)
	f.api.put(`{kind: Deployment, metadata: {name: web, namespace: web,
  labels: {helm.toolkit.fluxcd.io/name: web, helm.toolkit.fluxcd.io/namespace: web}}}`)
	f.api.put(`{kind: Deployment, metadata: {name: coredns, namespace: kube-system}}`)
	var spec Spec
	spec.SetDefaults()
	f.run = &run{spec, enginestest.Begin(t, f.api, f.progress)}
	return f
}
