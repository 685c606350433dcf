// Package enginestest has what the fake clusters of both engines' tests have in common: objects that are kept, found and listed. It models
// no versions, watches or field managers.
package enginestest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/internal/engines"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/fakes/kubeapitest"
)

// Answers returns the kubeconfig of a server that answers paths with objects in YAML, and knows no others: CRDs and namespaces are missing.
// The path of what is part of an application ends with a space and the application's name. Nothing may be changed.
func Answers(t *testing.T, answers map[string]string) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, http.MethodGet, r.Method, "nothing is changed")
		path := r.URL.Path
		if selector := r.URL.Query().Get("labelSelector"); selector != "" {
			application, is := strings.CutPrefix(selector, "app.kubernetes.io/part-of=")
			assert.True(t, is, selector)
			path += " " + application
		}
		text, known := answers[path]
		if !known {
			http.NotFound(w, r)
			return
		}
		body, err := yaml.YAMLToJSON([]byte(text))
		assert.NoError(t, err)
		_, _ = w.Write(body)
	}))
	server.StartTLS()
	t.Cleanup(server.Close)
	return kubeapitest.Kubeconfig(t, server)
}

// Store is the objects of a fake API server.
type Store struct {
	ByKind  map[string]string                                // resource of each kind, such as apps/v1/deployments
	Objects map[string]map[string]*unstructured.Unstructured // by resource, then namespace/name
}

// NewStore returns a store that serves resources and has no objects.
func NewStore(byKind map[string]string) Store {
	s := Store{byKind, map[string]map[string]*unstructured.Unstructured{}}
	for _, resource := range byKind {
		s.Objects[resource] = map[string]*unstructured.Unstructured{}
	}
	return s
}

// Split returns the resource, the namespace and the name in the path of a request; "" for what it does not have.
func Split(path string) (resource, namespace, name string) {
	resource = strings.TrimPrefix(path, "/apis/")
	before, after, scoped := strings.Cut(resource, "/namespaces/")
	if !scoped {
		return resource, "", ""
	}
	parts := append(strings.Split(after, "/"), "")
	return before + "/" + parts[1], parts[0], parts[2]
}

// Find returns the object that a request names. Any other request it answers, with a list or a refusal, and returns nil.
func (s Store) Find(w http.ResponseWriter, r *http.Request) *unstructured.Unstructured {
	w.Header().Set("Content-Type", "application/json")
	resource, namespace, name := Split(r.URL.Path)
	known, served := s.Objects[resource]
	object := known[namespace+"/"+name]
	switch {
	case !served || name != "" && object == nil:
		kubeapitest.Refuse(w, http.StatusNotFound, "NotFound")
	case name == "":
		items := []any{}
		for _, o := range known {
			if namespace == "" || o.GetNamespace() == namespace {
				items = append(items, o.Object)
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items})
	}
	return object
}

// Decode reads an object in YAML, of a kind that the store serves.
func (s Store) Decode(text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		panic(err)
	}
	resource := s.ByKind[u.GetKind()]
	u.SetAPIVersion(resource[:strings.LastIndex(resource, "/")])
	return u
}

// Keep adds an object, or replaces it.
func (s Store) Keep(o *unstructured.Unstructured) {
	s.Objects[s.ByKind[o.GetKind()]][o.GetNamespace()+"/"+o.GetName()] = o
}

// Drop removes an object.
func (s Store) Drop(o *unstructured.Unstructured) {
	delete(s.Objects[s.ByKind[o.GetKind()]], o.GetNamespace()+"/"+o.GetName())
}

// Titles returns the titles of all objects, sorted.
func (s Store) Titles() (titles []string) {
	for _, objects := range s.Objects {
		for _, o := range objects {
			titles = append(titles, Title(o))
		}
	}
	slices.Sort(titles)
	return titles
}

// Title names an object, as an engines.Key does.
func Title(o *unstructured.Unstructured) string {
	return engines.KeyOf(o.GetKind(), o).String()
}

// Begin begins a removal from a fake API server, which looks without pauses.
func Begin(t *testing.T, api http.Handler, progress io.Writer) *engines.Removal {
	t.Helper()
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	target := probe.Target{Cluster: "infra", Kubeconfig: kubeapitest.Kubeconfig(t, server), Timeout: probe.Duration(10 * time.Second)}
	removal, err := engines.BeginRemoval(target, progress)
	require.NoError(t, err)
	removal.Interval = time.Millisecond
	return removal
}
