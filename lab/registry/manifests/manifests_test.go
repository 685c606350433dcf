package manifests

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const crd = `kind: CustomResourceDefinition
metadata: {name: a.example.com}
description: gone
spec: {properties: {description: {type: string, description: gone too}}, list: [{description: and gone}]}
`

func files(t *testing.T) Files {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(crd), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte("resources: [a.yaml]\n"), 0o600))
	published := t.TempDir()
	for _, name := range []string{"crd.descriptionless.yaml", "cnpg-1.2.3.yaml", "crds.yaml", "crd.yaml"} {
		require.NoError(t, os.WriteFile(filepath.Join(published, name), []byte(crd), 0o600))
	}
	nearest := Release{Version: "1.2.3", Dir: dir, Served: []string{"1.2.3", "2.0.0"}}
	release, whole := Release{Version: "1.2.3", Dir: dir}, Release{Version: "1.2.3", Dir: published}
	f, err := New(Sources{
		GatewayAPI: release, CertManager: release, ExternalSecrets: nearest, PrometheusOperator: release,
		VictoriaMetrics: whole, CloudNativePG: whole, Rook: whole, CephCSI: whole,
	})
	require.NoError(t, err)
	return f
}

func get(t *testing.T, h http.Handler, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	body, err := io.ReadAll(w.Body)
	require.NoError(t, err)
	if location := w.Header().Get("Location"); location != "" {
		return w.Code, location
	}
	return w.Code, string(body)
}

func TestFiles_AreFoundWhereTheProjectsPublishThem(t *testing.T) {
	handlers := files(t).Handlers()
	path := "/kubernetes-sigs/gateway-api/releases/download/v1.2.3/standard-install.yaml"
	code, location := get(t, handlers[GitHub], path)
	require.Equal(t, http.StatusFound, code, "a release's file lies elsewhere")
	require.Equal(t, "https://"+Assets+path, location)
	code, body := get(t, handlers[Assets], path)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, 1, strings.Count(body, "kind: CustomResourceDefinition"))
	require.NotContains(t, body, "resources:")

	for _, version := range []string{"v1.2.3", "v2.0.0"} {
		code, _ = get(t, handlers[Raw], "/external-secrets/external-secrets/"+version+"/deploy/crds/bundle.yaml")
		require.Equal(t, http.StatusOK, code, version)
	}
	code, _ = get(t, handlers[GitHub], "/cert-manager/cert-manager/releases/download/v9.9.9/cert-manager.crds.yaml")
	require.Equal(t, http.StatusNotFound, code)
}

func TestFiles_HaveTheStrippedDownOnesWithoutDescriptions(t *testing.T) {
	_, body := get(t, files(t).Handlers()[Assets], "/prometheus-operator/prometheus-operator/releases/download/v1.2.3/stripped-down-crds.yaml")
	require.NotContains(t, body, "gone")
	require.Contains(t, body, "description:", "a field of that name stays")
}

func TestFiles_AreThePublishedOnesByteForByteWhereTheSourcesHaveThem(t *testing.T) {
	handlers := files(t).Handlers()
	code, body := get(t, handlers[Raw], "/VictoriaMetrics/operator/v1.2.3/config/crd/overlay/crd.descriptionless.yaml")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, crd, body)
	code, body = get(t, handlers[Raw], "/rook/rook/v1.2.3/deploy/examples/crds.yaml")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, crd, body)
	code, body = get(t, handlers[Raw], "/ceph/ceph-csi-operator/v1.2.3/deploy/multifile/crd.yaml")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, crd, body)
	code, body = get(t, handlers[Raw], "/cloudnative-pg/cloudnative-pg/release-1.2/releases/cnpg-1.2.3.yaml")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, crd, body)
}

func TestNew_RefusesAFolderWithoutCRDs(t *testing.T) {
	_, err := New(Sources{GatewayAPI: Release{Version: "1.2.3", Dir: t.TempDir()}})
	require.ErrorContains(t, err, "standard-install.yaml: no CRD in")
}
