package talos_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/talos"
)

func TestManifests_AreAppliedAgainWhenAControlPlanesConfigurationChangesThem(t *testing.T) {
	w := newWorld(t)
	w.install(configmachine.TypeControlPlane, 11)
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)
	applied := func() int {
		w.kube.mu.Lock()
		defer w.kube.mu.Unlock()
		return len(w.kube.planes[0].applied)
	}
	before := applied()
	apply := func(contents string) {
		_, err := w.admin(11).ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{
			Data: w.config(configmachine.TypeControlPlane, 11, func(c *v1alpha1.Config) {
				c.ClusterConfig.ClusterInlineManifests = v1alpha1.ClusterInlineManifests{{InlineManifestName: "cilium",
					InlineManifestContents: contents}}
			}),
			Mode: machine.ApplyConfigurationRequest_NO_REBOOT,
		})
		require.NoError(t, err)
	}
	apply("kind: ConfigMap")
	require.Equal(t, before+1, applied())
	apply("kind: ConfigMap")
	require.Equal(t, before+1, applied(), "nothing has changed")
	w.kube.mu.Lock()
	defer w.kube.mu.Unlock()
	require.Equal(t, "kind: ConfigMap", w.kube.planes[0].applied[before].Cluster().InlineManifests()[0].Contents())
}

func TestManifests_AreAppliedByTheVersionThatTheControlPlaneRuns(t *testing.T) {
	w := newWorld(t, installers)
	w.runs("v1.13.8")
	w.cluster(1, 0)
	by := func(version string) func() bool {
		return func() bool {
			w.kube.mu.Lock()
			defer w.kube.mu.Unlock()
			return w.kube.planes[len(w.kube.planes)-1].talos == version
		}
	}
	w.eventually("at its first boot", by("v1.13.8"))
	_, _, err := w.lifecycle(11, installer("v1.14.1"))
	require.NoError(t, err)
	require.NoError(t, w.admin(11).Reboot(w.ctx))
	w.eventually("after an upgrade", by("v1.14.1"))
}

func TestManifests_ByURLAreDownloadedUntilAllAreThere(t *testing.T) {
	var missing atomic.Bool
	missing.Store(true)
	host := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer x":
			http.Error(w, "no", http.StatusUnauthorized)
		case r.URL.Path == "/later.yaml" && missing.Load():
			http.NotFound(w, r)
		default:
			_, _ = w.Write([]byte("kind: ConfigMap # " + r.URL.Path))
		}
	}))
	defer host.Close()
	w := newWorld(t, func(c *talos.Config) { c.Fetch = host.Client() })
	w.install(configmachine.TypeControlPlane, 11, func(c *v1alpha1.Config) {
		c.ClusterConfig.ExtraManifests = []string{host.URL + "/now.yaml", host.URL + "/later.yaml"}
		c.ClusterConfig.ExtraManifestHeaders = map[string]string{"Authorization": "Bearer x"}
	})
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)
	got := func() (ids []string) {
		w.kube.mu.Lock()
		defer w.kube.mu.Unlock()
		for id := range w.kube.planes[0].downloaded {
			ids = append(ids, strings.TrimPrefix(id, "99-"+host.URL))
		}
		return ids
	}
	w.eventually("the manifest that exists is applied", func() bool { return len(got()) == 1 })
	require.Equal(t, []string{"/now.yaml"}, got())
	w.eventually("the node's log says what is wrong", func() bool {
		return strings.Contains(w.dmesg(11), `[talos] controller failed {"component": "controller-runtime", "controller": "k8s.ExtraManifestController", `+
			`"error": "1 error occurred:\n\t* error downloading \"`+host.URL+`/later.yaml\": bad response code: 404\n\n"}`)
	})
	missing.Store(false)
	w.eventually("the other one follows", func() bool { return len(got()) == 2 })
	require.Contains(t, w.dmesg(11), `[talos] downloaded manifest "`+host.URL+`/later.yaml"`)
	w.eventually("both are resources", func() bool { return len(w.manifests(11)) == 3 })
	require.Contains(t, w.manifests(11), "99-"+host.URL+"/later.yaml")

	w.kube.planes[0].report(errors.New("no such namespace"))
	require.Contains(t, w.dmesg(11), `"controller": "k8s.ManifestApplyController", "error": "no such namespace"`)
}

func TestManifests_FromElsewhereCannotBeDownloadedInTheLab(t *testing.T) {
	w := newWorld(t)
	w.install(configmachine.TypeControlPlane, 11, func(c *v1alpha1.Config) {
		c.ClusterConfig.ExtraManifests = []string{"https://example.com/x.yaml"}
	})
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)
	w.eventually("the node's log says so", func() bool {
		return strings.Contains(w.dmesg(11), `error downloading \"https://example.com/x.yaml\": Get \"https://example.com/x.yaml\": dial tcp: lookup example.com: no such host`)
	})
}
