package prune

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/internal/engines"
	"github.com/slipway-platform/slipway/internal/kubeapi/kubeapitest"
	"github.com/slipway-platform/slipway/internal/probe"
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

	mu       sync.Mutex
	objects  map[string]map[string]*unstructured.Unstructured // by resource, then namespace/name
	requests []string                                         // those that change something, in order
	made     int                                              // how often flux-operator has made the root
}

func newAPI() *api {
	a := &api{stuck: map[string]string{}, objects: map[string]map[string]*unstructured.Unstructured{}}
	for _, resource := range byKind {
		a.objects[resource] = map[string]*unstructured.Unstructured{}
	}
	return a
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	resource, name := strings.TrimPrefix(r.URL.Path, "/apis/"), ""
	if before, after, scoped := strings.Cut(resource, "/namespaces/"); scoped {
		parts := strings.Split(after, "/") // namespace, resource, name
		resource, name = before+"/"+parts[1], parts[0]+"/"+parts[2]
	}
	w.Header().Set("Content-Type", "application/json")
	if a.onRequest != nil && a.onRequest(r.Method+" "+resource) {
		refuse(w, http.StatusInternalServerError, "InternalError")
		return
	}
	if name == "" && resource == kustomizations {
		a.reconcile()
	}
	known, served := a.objects[resource]
	object := known[name]
	switch {
	case !served || name != "" && object == nil:
		refuse(w, http.StatusNotFound, "NotFound")
		return
	case r.Method == http.MethodGet:
		items := []any{}
		for _, o := range known {
			items = append(items, o.Object)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items})
		return
	case r.Method == http.MethodDelete:
		a.requests = append(a.requests, "DELETE "+title(object))
		a.delete(object)
	case r.Method == http.MethodPatch:
		var change map[string]any
		_ = json.NewDecoder(r.Body).Decode(&change)
		text, _ := json.Marshal(change)
		a.requests = append(a.requests, "PATCH "+title(object)+" "+string(text))
		merge(object.Object, change)
		a.operate()
	}
	_ = json.NewEncoder(w).Encode(object)
}

func refuse(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":%q,"code":%d}`, reason,
		strings.ToLower(reason), code)
}

// merge applies a merge patch.
func merge(into, change map[string]any) {
	for name, value := range change {
		nested, is := value.(map[string]any)
		switch {
		case value == nil:
			delete(into, name)
		case is:
			below, _ := into[name].(map[string]any)
			if below == nil {
				below = map[string]any{}
				into[name] = below
			}
			merge(below, nested)
		default:
			into[name] = value
		}
	}
}

func title(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// delete deletes an object: at once, or with its finalizer if a controller of Flux works on it.
func (a *api) delete(o *unstructured.Unstructured) {
	if o.GetKind() == "Deployment" {
		a.gone(o)
		return
	}
	if o.GetDeletionTimestamp() == nil {
		unstructured.SetNestedField(o.Object, time.Now().UTC().Format(time.RFC3339), "metadata", "deletionTimestamp") //nolint:errcheck // a map
	}
	if message := a.stuck[title(o)]; message != "" {
		_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{"type": "Ready", "status": "False", "reason": "UninstallFailed",
			"message": message}}, "status", "conditions")
	}
}

func (a *api) gone(o *unstructured.Unstructured) {
	delete(a.objects[byKind[o.GetKind()]], o.GetNamespace()+"/"+o.GetName())
}

// reconcile lets Flux's controllers finalize what is being deleted, as their sources do it.
func (a *api) reconcile() {
	var deleting []*unstructured.Unstructured
	for _, resource := range []string{kustomizations, helmReleases, resourceSets} {
		for _, o := range a.objects[resource] {
			if o.GetDeletionTimestamp() != nil && a.stuck[title(o)] == "" {
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
			for _, applied := range a.objects[resource] {
				labels := applied.GetLabels()
				if removes && labels[label+"/name"] == o.GetName() && labels[label+"/namespace"] == o.GetNamespace() &&
					applied.GetAnnotations()[mark] == "" {
					a.delete(applied)
				}
			}
		}
		a.gone(o)
	}
}

// operate lets flux-operator make the root, unless the FluxInstance is suspended or has no sync.
func (a *api) operate() {
	instance := a.objects[fluxInstances]["flux-system/flux"]
	_, syncs, _ := unstructured.NestedMap(instance.Object, "spec", "sync")
	if strings.EqualFold(instance.GetAnnotations()[reconcileAnnotation], disabled) || !syncs ||
		a.objects[kustomizations]["flux-system/flux-system"] != nil {
		return
	}
	a.made++
	a.objects[kustomizations]["flux-system/flux-system"] = decode(`{kind: Kustomization,
  metadata: {name: flux-system, namespace: flux-system}, spec: {prune: true}}`)
}

func decode(object string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(object), &u.Object); err != nil {
		panic(err)
	}
	if u.GetAPIVersion() == "" {
		resource := byKind[u.GetKind()]
		u.SetAPIVersion(resource[:strings.LastIndex(resource, "/")])
	}
	return u
}

// put adds an object, or replaces it.
func (a *api) put(object string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := decode(object)
	a.objects[byKind[u.GetKind()]][u.GetNamespace()+"/"+u.GetName()] = u
}

// exists returns the titles of all objects, sorted.
func (a *api) exists() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var titles []string
	for _, objects := range a.objects {
		for _, o := range objects {
			titles = append(titles, title(o))
		}
	}
	slices.Sort(titles)
	return titles
}

func (a *api) instance() *unstructured.Unstructured {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.objects[fluxInstances]["flux-system/flux"].DeepCopy()
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
	kube := httptest.NewServer(f.api)
	t.Cleanup(kube.Close)
	spec := Spec{Target: probe.Target{Cluster: "infra", Kubeconfig: "x", Timeout: probe.Duration(10 * time.Second)}}
	spec.SetDefaults()
	removal, err := engines.BeginRemoval(kubeapitest.Kubeconfig(t, kube), f.progress)
	require.NoError(t, err)
	removal.Interval = time.Millisecond
	f.run = &run{spec, removal}
	return f
}
