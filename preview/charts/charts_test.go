package charts

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/slipway-platform/slipway/preview/report"
)

// archive writes a chart into a folder, and returns the folder.
func archive(t *testing.T, template string) string {
	t.Helper()
	folder := t.TempDir()
	_, err := chartutil.Save(&chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: "v2", Name: "one", Version: "1.2.3", KubeVersion: ">= 1.30.0-0"},
		Templates: []*chart.File{{Name: "templates/all.yaml", Data: []byte(template)}, {Name: "templates/NOTES.txt", Data: []byte("hello")}},
	}, folder)
	require.NoError(t, err)
	return folder
}

const template = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {kubernetes: "{{ .Capabilities.KubeVersion }}", size: "{{ .Values.size }}", decoded: "{{ .Values.ca | b64dec }}"}
---
{{- if .Capabilities.APIVersions.Has "gateway.networking.k8s.io/v1/GatewayClass" }}
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: elsewhere}
data: {tls.key: "{{ .Values.ca }}"}
{{- end }}
`

func TestRenderer_RendersAnArchiveForTheCluster(t *testing.T) {
	one := report.Chart{Name: "release", Namespace: "apps", Chart: "oci://registry.example.com/charts/one", Version: "1.2.3",
		Values: map[string]any{"size": "3", "ca": report.Hidden}}
	Renderer{Folders: []string{t.TempDir(), archive(t, template)}, Kubernetes: "v1.35.8"}.Add(t.Context(), &one)
	require.Empty(t, one.Unrendered)
	require.Len(t, one.Manifests, 2)
	settings := one.Manifests["ConfigMap apps/settings"]
	assert.Contains(t, settings, "data.kubernetes = v1.35.8")
	assert.Contains(t, settings, "data.size = 3")
	assert.Contains(t, settings, "data.decoded = [secret]", "a chart can decode what is hidden")
	assert.Contains(t, one.Manifests["Secret elsewhere/key"], `data["tls.key"] = [secret]`)
}

func TestRenderer_SaysWhyAChartIsNotRendered(t *testing.T) {
	one := report.Chart{Name: "release", Chart: "two", Version: "1.2.3"}
	Renderer{Folders: []string{archive(t, template)}, Kubernetes: "v1.35.8"}.Add(t.Context(), &one)
	assert.Nil(t, one.Manifests)
	assert.Equal(t, "two-1.2.3.tgz is not on this computer", one.Unrendered)

	one = report.Chart{Name: "release", Chart: "one", Version: "1.2.3"}
	Renderer{Folders: []string{archive(t, `{{ required "size is missing" .Values.size }}`)}, Kubernetes: "v1.35.8"}.Add(t.Context(), &one)
	assert.Nil(t, one.Manifests)
	assert.Contains(t, one.Unrendered, "size is missing")

	one = report.Chart{Name: "release", Chart: "one", Version: "1.2.3"}
	Renderer{Folders: []string{archive(t, template)}, Kubernetes: "v1.20.0"}.Add(t.Context(), &one)
	assert.Nil(t, one.Manifests, "the chart needs a newer Kubernetes")
}
