package leftover

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
)

// withStatus returns the record of a revision with a status.
func withStatus(t *testing.T, revision, status string) map[string]any {
	t.Helper()
	return stored(t, "sh.helm.release.v1.cilium.v"+revision, revision, status, "cilium")
}

func TestUnlock_RemovesTheRecordOfAnInterruptedUpgradeOnly(t *testing.T) {
	for name, one := range map[string]struct {
		records []map[string]any
		removed []string
	}{
		"an upgrade was interrupted": {[]map[string]any{withStatus(t, "1", "deployed"), withStatus(t, "2", "pending-upgrade")},
			[]string{"sh.helm.release.v1.cilium.v2"}},
		"a rollback was interrupted": {[]map[string]any{withStatus(t, "1", "superseded"), withStatus(t, "2", "deployed"),
			withStatus(t, "3", "pending-rollback")}, []string{"sh.helm.release.v1.cilium.v3"}},
		"an upgrade has failed":           {[]map[string]any{withStatus(t, "1", "deployed"), withStatus(t, "2", "failed")}, nil},
		"nothing was interrupted":         {[]map[string]any{withStatus(t, "1", "superseded"), withStatus(t, "2", "deployed")}, nil},
		"an installation was interrupted": {[]map[string]any{withStatus(t, "1", "pending-install")}, nil},
		"there is no record":              {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, one.records...)
			require.NoError(t, Unlock(t.Context(), c.kubeconfig(t), cilium))
			assert.Equal(t, one.removed, c.deleted)
		})
	}
}

func TestReleased_RefusesWhatFluxStillOwns(t *testing.T) {
	owner := OwnerOf("cilium", cluster.OwnerFlux)
	for name, one := range map[string]struct {
		answer  any // nil: there is none
		refused string
	}{
		"without a HelmRelease": {},
		"suspended":             {answer: map[string]any{"spec": map[string]any{"suspend": true}}},
		"active": {answer: map[string]any{"spec": map[string]any{}},
			refused: "HelmRelease flux-system/cilium: is active in the cluster, and Pulumi is to change its release; " +
				"commit and push spec.suspend: true"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &apiServer{}
			c.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/apis/helm.toolkit.fluxcd.io/v2/namespaces/flux-system/helmreleases/cilium" || one.answer == nil {
					http.NotFound(w, r)
					return
				}
				json.NewEncoder(w).Encode(one.answer) //nolint:errcheck // the client notices
			}))
			t.Cleanup(c.Close)
			err := owner.Released(t.Context(), c.kubeconfig(t))
			if one.refused == "" {
				require.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, one.refused)
		})
	}
}

// fluxServer is an API server with one HelmRelease. Flux tries its values when it is read for the second time after a request.
type fluxServer struct {
	mu       sync.Mutex
	suspend  bool
	request  string
	readings int
}

func (f *fluxServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	handled := ""
	if r.Method == http.MethodPatch {
		var change struct {
			Metadata struct{ Annotations map[string]string }
		}
		json.NewDecoder(r.Body).Decode(&change) //nolint:errcheck // the test notices
		f.request = change.Metadata.Annotations["reconcile.fluxcd.io/requestedAt"]
	} else if f.request != "" {
		if f.readings++; f.readings > 1 {
			handled = f.request
		}
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{ //nolint:errcheck // the client notices
		"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": map[string]any{"name": "cilium"},
		"spec": map[string]any{"suspend": f.suspend}, "status": map[string]any{"lastHandledReconcileAt": handled},
	})
}

func TestTried_ReturnsOnceFluxHasTriedTheValues(t *testing.T) {
	owner := OwnerOf("cilium", cluster.OwnerFlux)
	for name, one := range map[string]struct {
		flux     *fluxServer // nil: there is none
		readings int
	}{
		"Flux owns the release":    {flux: &fluxServer{}, readings: 2},
		"Flux is suspended":        {flux: &fluxServer{suspend: true}},
		"there is no Flux to wait": {},
	} {
		handler := http.NotFoundHandler()
		if one.flux != nil {
			handler = one.flux
		}
		c := &apiServer{Server: httptest.NewTLSServer(handler)}
		t.Cleanup(c.Close)
		require.NoError(t, owner.Tried(t.Context(), c.kubeconfig(t)), name)
		if one.flux != nil {
			assert.Equal(t, one.readings, one.flux.readings, name)
		}
	}
}

func TestTried_GivesUpWhileTheAPIServerRefusesEveryRequest(t *testing.T) {
	busy := serverOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "etcd has no leader", http.StatusServiceUnavailable)
	}))
	for _, owner := range []Owner{
		flux{namespace: "flux-system", name: "cilium", limit: 20 * time.Millisecond},
		argoCD{release: "cilium", every: time.Millisecond, limit: 20 * time.Millisecond},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // instead of for ever
		err := owner.Tried(ctx, busy.kubeconfig(t))
		cancel()
		assert.ErrorContains(t, err, owner.String()+": not done within 20ms (last: ", "the run goes on with a warning")
	}
}
