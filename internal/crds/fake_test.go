package crds

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/fakes/kubeapitest"
)

// api is an API server that serves CRDs and nothing else. It models neither schemas nor field managers.
type api struct {
	// onApply, if non-nil, answers an apply in its place; false leaves it to the server.
	onApply func(name string, w http.ResponseWriter) bool
	// establish, if non-nil, decides whether a CRD that was applied is established; nil establishes it with the next change.
	establish func(name string) bool
	// down answers every request with 503.
	down atomic.Bool

	mu      sync.Mutex
	version int
	objects map[string]*unstructured.Unstructured
	changed chan struct{}
	applied []string // in order
}

func newAPI() *api {
	return &api{objects: map[string]*unstructured.Unstructured{}, changed: make(chan struct{})}
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"), "/")
	w.Header().Set("Content-Type", "application/json")
	switch {
	case a.down.Load():
		http.Error(w, "etcd has no leader", http.StatusServiceUnavailable)
	case r.Method == http.MethodPatch:
		a.patch(name, w, r)
	case r.URL.Query().Get("watch") != "":
		a.watch(w, r)
	case name != "":
		a.mu.Lock()
		defer a.mu.Unlock()
		if o, ok := a.objects[name]; ok {
			_ = json.NewEncoder(w).Encode(o)
			return
		}
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`, http.StatusNotFound)
	default:
		a.list(w)
	}
}

func (a *api) patch(name string, w http.ResponseWriter, r *http.Request) {
	if a.onApply != nil && a.onApply(name, w) {
		return
	}
	body, _ := io.ReadAll(r.Body)
	object := &unstructured.Unstructured{}
	query := r.URL.Query()
	if err := yaml.Unmarshal(body, &object.Object); err != nil || query.Get("fieldManager") != kubeapi.FieldManager ||
		query.Get("force") == "true" {
		http.Error(w, "not applied as it should be", http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.applied = append(a.applied, name)
	if old := a.objects[name]; old != nil {
		same := old.DeepCopy()
		unstructured.RemoveNestedField(same.Object, "status")
		same.SetResourceVersion("")
		if fmt.Sprint(same.Object) == fmt.Sprint(object.Object) {
			_ = json.NewEncoder(w).Encode(old)
			return
		}
	}
	a.put(object)
	object.Object["status"] = map[string]any{"conditions": nil} // as the real one answers at first
	_ = json.NewEncoder(w).Encode(object)
	if a.establish == nil || a.establish(name) {
		next := object.DeepCopy()
		condition(next, "Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
		a.put(next)
	}
}

func (a *api) put(object *unstructured.Unstructured) {
	a.version++
	object.SetResourceVersion(strconv.Itoa(a.version))
	a.objects[object.GetName()] = object
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *api) list(w io.Writer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	items := []any{}
	for _, o := range a.objects {
		items = append(items, map[string]any{"metadata": o.Object["metadata"]})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
		"metadata": map[string]any{}, "items": items})
}

func (a *api) watch(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	seen, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for {
		a.mu.Lock()
		object, changed := a.objects[name], a.changed
		a.mu.Unlock()
		if object == nil { // it was deleted
			return
		}
		if version, _ := strconv.Atoi(object.GetResourceVersion()); version > seen {
			seen = version
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": object.Object})
			w.(http.Flusher).Flush()
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		}
	}
}

func condition(o *unstructured.Unstructured, kind, status, reason, message string) {
	_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{"type": kind, "status": status, "reason": reason, "message": message}},
		"status", "conditions")
}

func crd(name string) string {
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" +
		"metadata:\n  name: " + name + "\nspec:\n  group: example.com\n"
}

// fixture is a run against a fake API server and a server of manifests.
type fixture struct {
	*run
	api       *api
	manifests map[string]string // by path
	progress  *strings.Builder
	base      string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{api: newAPI(), manifests: map[string]string{}, progress: &strings.Builder{}}
	kube := httptest.NewServer(f.api)
	t.Cleanup(kube.Close)
	files := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, found := f.manifests[r.URL.Path]
		if !found {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, content)
	}))
	t.Cleanup(files.Close)
	client := newClient()
	client.Transport = files.Client().Transport
	f.base = files.URL
	api, err := kubeapi.New([]byte(kubeapitest.Kubeconfig(t, kube)), requestTimeout)
	require.NoError(t, err)
	f.run = &run{
		spec: Spec{Target: probe.Target{Cluster: "infra", Timeout: probe.Duration(10 * time.Second)}}, http: client, api: api,
		pause:    time.Millisecond,
		Progress: probe.Begin(f.progress),
	}
	return f
}

// source adds a manifest and a source that names it.
func (f *fixture) source(name, content string) *Source {
	f.manifests["/"+name] = content
	f.spec.Sources = append(f.spec.Sources, Source{Name: name, Version: "v1.0.0", URL: f.base + "/" + name})
	return &f.spec.Sources[len(f.spec.Sources)-1]
}
