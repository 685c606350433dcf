package leftover

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
		"an upgrade was interrupted":      {[]map[string]any{withStatus(t, "1", "deployed"), withStatus(t, "2", "pending-upgrade")}, []string{"sh.helm.release.v1.cilium.v2"}},
		"a rollback was interrupted":      {[]map[string]any{withStatus(t, "1", "superseded"), withStatus(t, "2", "deployed"), withStatus(t, "3", "pending-rollback")}, []string{"sh.helm.release.v1.cilium.v3"}},
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
	owner := Owner{Namespace: "flux-system", Name: "cilium"}
	for name, one := range map[string]struct {
		answer  any // nil: there is none
		refused string
	}{
		"without a HelmRelease": {},
		"suspended":             {answer: map[string]any{"spec": map[string]any{"suspend": true}}},
		"active": {answer: map[string]any{"spec": map[string]any{}},
			refused: "HelmRelease flux-system/cilium: is active in the cluster, and Pulumi is to change its release; commit and push spec.suspend: true"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{}
			c.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/apis/helm.toolkit.fluxcd.io/v2/namespaces/flux-system/helmreleases/cilium" || one.answer == nil {
					http.NotFound(w, r)
					return
				}
				json.NewEncoder(w).Encode(one.answer) //nolint:errcheck // the client notices
			}))
			t.Cleanup(c.Close)
			err := Released(t.Context(), c.kubeconfig(t), owner)
			if one.refused == "" {
				require.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, one.refused)
		})
	}
}
