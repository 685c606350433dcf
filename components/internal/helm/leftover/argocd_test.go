package leftover

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// argoCDServer is an API server with a release that Argo CD applies: with the values in the Secret once it was asked twice, in a sync that
// has ended at the next look.
type argoCDServer struct {
	mu       sync.Mutex
	record   bool // there is one, with the Application's mark
	gone     bool // the Application
	asked    int
	phase    string
	readings int

	servers int       // repo-servers; 0 is one, too
	first   time.Time // of what it was asked
}

func (s *argoCDServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readings++
	sum := sha256.Sum256([]byte("new"))
	metadata := map[string]any{"name": "x"}
	answer := map[string]any{"metadata": metadata}
	switch r.URL.Path {
	case "/api/v1/namespaces/argocd/pods":
		items := []any{}
		asked := r.URL.Query()
		if asked.Get("labelSelector") == "app.kubernetes.io/component=repo-server" && asked.Get("fieldSelector") == "status.phase=Running" {
			items = make([]any, s.servers)
		}
		answer["items"] = items
	case "/api/v1/namespaces/argocd/secrets/cilium-values":
		answer["data"] = map[string][]byte{"values.yaml": []byte("new")}
	case "/api/v1/namespaces/argocd/configmaps/cilium-values":
		if !s.record {
			http.NotFound(w, r)
			return
		}
		metadata["annotations"] = map[string]any{"argocd.argoproj.io/tracking-id": "platform:/ConfigMap:argocd/cilium-values"}
		checksum := "former"
		if s.asked >= 2 {
			checksum = hex.EncodeToString(sum[:])
		}
		answer["data"] = map[string]any{"checksum": checksum}
	case "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/platform":
		if s.gone {
			http.NotFound(w, r)
			return
		}
		answer["apiVersion"], answer["kind"] = "argoproj.io/v1alpha1", "Application"
		if r.Method == http.MethodPatch {
			s.asked, s.phase = s.asked+1, "Running"
			if s.first.IsZero() {
				s.first = time.Now()
			}
		} else {
			answer["status"] = map[string]any{"operationState": map[string]any{"phase": s.phase}}
			if s.asked >= 2 {
				s.phase = "Succeeded"
			}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(answer) //nolint:errcheck // the client notices
}

func serverOf(t *testing.T, handler http.Handler) *apiServer {
	t.Helper()
	c := &apiServer{Server: httptest.NewTLSServer(handler)}
	t.Cleanup(c.Close)
	return c
}

func TestReleased_RefusesWhatArgoCDStillOwns(t *testing.T) {
	for name, one := range map[string]struct {
		server  *argoCDServer
		refused string
	}{
		"without a record":                {server: &argoCDServer{}},
		"Argo CD is gone, but its record": {server: &argoCDServer{record: true, gone: true}},
		"owned": {&argoCDServer{record: true}, "ConfigMap argocd/cilium-values: says that the Application platform applies the release, " +
			"and Pulumi is to change it; commit and push spec.suspend: true"},
	} {
		err := argoCD{release: "cilium"}.Released(t.Context(), serverOf(t, one.server).kubeconfig(t))
		if one.refused == "" {
			require.NoError(t, err, name)
			continue
		}
		assert.ErrorContains(t, err, one.refused, name)
	}
}

func TestTried_ReturnsOnceArgoCDHasAppliedTheValues(t *testing.T) {
	server := &argoCDServer{record: true}
	require.NoError(t, argoCD{release: "cilium", every: time.Millisecond}.Tried(t.Context(), serverOf(t, server).kubeconfig(t)))
	assert.Equal(t, 2, server.asked, "until its plugin sees the Secret")
	assert.Equal(t, "Succeeded", server.phase)

	server = &argoCDServer{}
	require.NoError(t, argoCD{release: "cilium", every: time.Millisecond}.Tried(t.Context(), serverOf(t, server).kubeconfig(t)))
	assert.Zero(t, server.asked, "Argo CD does not own the release yet")
}

func TestTried_AsksOnceAllRepoServersSeeTheValues(t *testing.T) {
	server, begin := &argoCDServer{record: true, servers: 2}, time.Now()
	tried := argoCD{release: "cilium", every: time.Millisecond, seen: 200 * time.Millisecond}
	require.NoError(t, tried.Tried(t.Context(), serverOf(t, server).kubeconfig(t)))
	assert.GreaterOrEqual(t, server.first.Sub(begin), tried.seen, "one of them would render the former values, which Argo CD would apply")

	server, tried.seen = &argoCDServer{record: true, servers: 1}, time.Hour
	require.NoError(t, tried.Tried(t.Context(), serverOf(t, server).kubeconfig(t)))
}
