package leftover

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/fakes/kubeapitest"
)

var cilium = Release{Namespace: "kube-system", Name: "cilium", Chart: "cilium"}

// apiServer is an API server that stores records of releases.
type apiServer struct {
	*httptest.Server
	secrets  []map[string]any
	deleted  []string
	requests atomic.Int32
	failures atomic.Int32 // answers that are 503 before the first real one
}

func newCluster(t *testing.T, secrets ...map[string]any) *apiServer {
	t.Helper()
	c := &apiServer{secrets: secrets}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/namespaces/kube-system/secrets", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("labelSelector") != "owner=helm,name=cilium" {
			http.Error(w, "no such selector", http.StatusBadRequest)
			return
		}
		json.NewEncoder(w).Encode(map[string]any{"items": c.secrets}) //nolint:errcheck // the client notices
	})
	mux.HandleFunc("DELETE /api/v1/namespaces/kube-system/secrets/{name}", func(w http.ResponseWriter, r *http.Request) {
		c.deleted = append(c.deleted, r.PathValue("name"))
		w.Write([]byte("{}")) //nolint:errcheck // the client notices
	})
	c.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.requests.Add(1)
		if c.failures.Add(-1) >= 0 {
			http.Error(w, "etcd has no leader", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	c.StartTLS()
	t.Cleanup(c.Close)
	return c
}

func (c *apiServer) kubeconfig(t *testing.T) string { return kubeapitest.Kubeconfig(t, c.Server) }

// stored returns a record in the form in which Helm stores it.
func stored(t *testing.T, name, revision, status, chart string) map[string]any {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	require.NoError(t, json.NewEncoder(w).Encode(map[string]any{
		"name": "cilium", "chart": map[string]any{"metadata": map[string]any{"name": chart}},
	}))
	require.NoError(t, w.Close())
	return map[string]any{
		"metadata": map[string]any{"name": name, "labels": map[string]string{"version": revision, "status": status}},
		"data":     map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))},
	}
}

func TestClear_RemovesTheRecordOfAnInterruptedInstallation(t *testing.T) {
	for _, status := range []string{"pending-install", "deployed", "failed"} {
		c := newCluster(t, stored(t, "sh.helm.release.v1.cilium.v1", "1", status, "cilium"))
		require.NoError(t, Clear(t.Context(), c.kubeconfig(t), cilium))
		assert.Equal(t, []string{"sh.helm.release.v1.cilium.v1"}, c.deleted, status)
	}
}

func TestClear_SendsOneRequestWithoutALeftover(t *testing.T) {
	c := newCluster(t)
	require.NoError(t, Clear(t.Context(), c.kubeconfig(t), cilium))
	assert.EqualValues(t, 1, c.requests.Load())
	assert.Empty(t, c.deleted)
}

func TestClear_RefusesARecordThatMayNotBeALeftover(t *testing.T) {
	for problem, secrets := range map[string][]map[string]any{
		"pulumi import": {
			stored(t, "sh.helm.release.v1.cilium.v1", "1", "superseded", "cilium"),
			stored(t, "sh.helm.release.v1.cilium.v2", "2", "deployed", "cilium"),
		},
		"`helm uninstall`":       {stored(t, "sh.helm.release.v1.cilium.v7", "7", "deployed", "cilium")},
		`as chart "calico"`:      {stored(t, "sh.helm.release.v1.cilium.v1", "1", "deployed", "calico")},
		"not a record of Helm's": {{"metadata": map[string]any{"name": "mine"}, "data": map[string][]byte{"release": []byte("bm8=")}}},
	} {
		c := newCluster(t, secrets...)
		err := Clear(t.Context(), c.kubeconfig(t), cilium)
		require.ErrorContains(t, err, problem)
		require.ErrorContains(t, err, "Helm release kube-system/cilium")
		assert.Empty(t, c.deleted, problem)
	}
}

func TestClear_RetriesWhileTheServerIsBusy(t *testing.T) {
	c := newCluster(t, stored(t, "sh.helm.release.v1.cilium.v1", "1", "pending-install", "cilium"))
	c.failures.Store(1)
	require.NoError(t, Clear(t.Context(), c.kubeconfig(t), cilium))
	assert.Len(t, c.deleted, 1)
}

func TestClear_ErrorsContainNothingOfAnInvalidKubeconfig(t *testing.T) {
	c := newCluster(t)
	good := c.kubeconfig(t)
	for _, bad := range []string{"", "secret-token: [", "clusters: []", good[:len(good)/2] + "\nsecret-token: 1",
		strings.Replace(good, "client-key-data", "secret-token", 1)} {
		err := Clear(t.Context(), bad, cilium)
		require.ErrorContains(t, err, "kubeconfig: ")
		require.NotContains(t, err.Error(), "secret-token")
	}
	assert.Zero(t, c.requests.Load())
}
