package registry

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/getter"
	helmregistry "helm.sh/helm/v3/pkg/registry"
	"helm.sh/helm/v3/pkg/repo"

	"github.com/slipway-platform/slipway/lab/registry/charts"
)

const crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: fluxinstances.fluxcd.controlplane.io\n"

func operatorChart(t *testing.T) string {
	t.Helper()
	crds := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(crds, "instances.yaml"), []byte(crd), 0o600))
	path, err := charts.FluxOperator(t.TempDir(), crds)
	require.NoError(t, err)
	return path
}

func TestHelmRepository_ServesAnIndexThatHelmReads(t *testing.T) {
	archive := operatorChart(t)
	h, err := HelmRepository(archive)
	require.NoError(t, err)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)

	r, err := server.Client().Get(server.URL + "/index.yaml")
	require.NoError(t, err)
	defer r.Body.Close()
	file := filepath.Join(t.TempDir(), "index.yaml")
	f, err := os.Create(file)
	require.NoError(t, err)
	_, err = f.ReadFrom(r.Body)
	require.NoError(t, err)
	index, err := repo.LoadIndexFile(file)
	require.NoError(t, err)
	version, err := index.Get("flux-operator", "0.59.0")
	require.NoError(t, err)
	require.Equal(t, []string{"flux-operator-0.59.0.tgz"}, version.URLs)

	r, err = server.Client().Get(server.URL + "/" + version.URLs[0])
	require.NoError(t, err)
	defer r.Body.Close()
	_, err = loader.LoadArchive(r.Body)
	require.NoError(t, err)
}

func TestUnbuilt_HelmPrintsTheCommandThatBuildsTheChart(t *testing.T) {
	h, err := Unbuilt("argo-cd", "10.8.0", "lab tools argo-cd-chart helm")
	require.NoError(t, err)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	providers := getter.Providers{{Schemes: []string{"http"}, New: getter.NewHTTPGetter}}
	url, err := repo.FindChartInRepoURL(server.URL, "argo-cd", "10.8.0", "", "", "", providers)
	require.NoError(t, err)
	require.Equal(t, server.URL+"/argo-cd-is-not-built/lab+tools+argo-cd-chart+helm.tgz", url)
	get, err := getter.NewHTTPGetter()
	require.NoError(t, err)
	_, err = get.Get(url)
	require.ErrorContains(t, err, "/argo-cd-is-not-built/lab+tools+argo-cd-chart+helm.tgz : 404 Not Found")
}

func TestOCI_HelmPullsTheChartThatWasPushed(t *testing.T) {
	h, err := OCI(map[string][]string{"controlplaneio-fluxcd/charts/flux-operator": {operatorChart(t)}})
	require.NoError(t, err)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	client, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP())
	require.NoError(t, err)
	host := strings.TrimPrefix(server.URL, "http://")
	pulled, err := client.Pull(host + "/controlplaneio-fluxcd/charts/flux-operator:0.59.0")
	require.NoError(t, err)
	require.Equal(t, "flux-operator", pulled.Chart.Meta.Name)
}

func TestFluxOperatorChart_MakesTheObjectsOfTheRealOne(t *testing.T) {
	chart, err := loader.Load(operatorChart(t))
	require.NoError(t, err)
	values, err := chartutil.ToRenderValues(chart, map[string]any{"extraArgs": []any{"--web-server-port=0"}},
		chartutil.ReleaseOptions{Name: "flux-operator", Namespace: "flux-system"}, nil)
	require.NoError(t, err)
	rendered, err := engine.Render(chart, values)
	require.NoError(t, err)
	all := strings.Builder{}
	for _, text := range rendered {
		all.WriteString(text)
	}
	for _, want := range []string{
		"kind: Deployment\nmetadata:\n  name: flux-operator\n  namespace: flux-system",
		"image: \"ghcr.io/controlplaneio-fluxcd/flux-operator:v0.59.0\"",
		"- --web-server-port=0",
		"kind: ServiceAccount", "kind: ClusterRoleBinding", "kind: Service\n",
		"name: fluxinstances.fluxcd.controlplane.io",
	} {
		require.Contains(t, all.String(), want)
	}
}
