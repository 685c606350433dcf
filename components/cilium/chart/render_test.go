package chart_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/components/cilium/chart"
	"github.com/slipway-platform/slipway/tests/fakechart"
)

// small is a chart that has one of everything that matters, by file.
var small = map[string]string{
	"Chart.yaml":             "{apiVersion: v2, name: small, version: 1.2.3, kubeVersion: \">=1.30.0-0\"}",
	"values.yaml":            "{size: 1, hook: false, broken: false}",
	"values.schema.json":     `{"type": "object", "properties": {"size": {"type": "integer"}}}`,
	"templates/NOTES.txt":    "Have fun.",
	"templates/_helpers.tpl": `{{- define "small.name" -}}small-{{ .Values.size }}{{- end -}}`,
	"templates/a.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "small.name" . }}
  labels: {app: small}
---
apiVersion: v1
kind: Service
metadata: {name: there, namespace: elsewhere, labels: {app.kubernetes.io/managed-by: somebody}}
`,
	"templates/b.yaml": `
apiVersion: v1
kind: Namespace
metadata: {name: elsewhere, annotations: {why: "Kubernetes {{ .Capabilities.KubeVersion.Version }}"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: apis}
data: {widgets: {{ .Capabilities.APIVersions.Has "example.com/v1/Widget" | quote }}, release: {{ .Release.IsInstall | quote }}}
`,
	"templates/hook.yaml": `{{ if .Values.hook }}
apiVersion: batch/v1
kind: Job
metadata: {name: late, annotations: {helm.sh/hook: post-install}}
{{ end }}`,
	"templates/broken.yaml": `{{ if .Values.broken }}just: text{{ end }}`,
}

func render(t *testing.T, change func(*chart.Release)) (string, error) {
	t.Helper()
	read, err := chart.Read(fakechart.Pack("small", small))
	require.NoError(t, err)
	release := chart.Release{Name: "mine", Namespace: "home", KubernetesVersion: "v1.35.8"}
	if change != nil {
		change(&release)
	}
	return read.Render(release)
}

func TestRender_WritesTheObjectsAsHelmWouldCreateThem(t *testing.T) {
	got, err := render(t, nil)
	require.NoError(t, err)
	assert.Equal(t, `---
apiVersion: v1
kind: Namespace
metadata:
  annotations:
    meta.helm.sh/release-name: mine
    meta.helm.sh/release-namespace: home
    why: Kubernetes v1.35.8
  labels:
    app.kubernetes.io/managed-by: Helm
  name: elsewhere
---
apiVersion: v1
data:
  release: "true"
  widgets: "false"
kind: ConfigMap
metadata:
  annotations:
    meta.helm.sh/release-name: mine
    meta.helm.sh/release-namespace: home
  labels:
    app.kubernetes.io/managed-by: Helm
  name: apis
  namespace: home
---
apiVersion: v1
kind: Service
metadata:
  annotations:
    meta.helm.sh/release-name: mine
    meta.helm.sh/release-namespace: home
  labels:
    app.kubernetes.io/managed-by: Helm
  name: there
  namespace: elsewhere
---
apiVersion: apps/v1
kind: Deployment
metadata:
  annotations:
    meta.helm.sh/release-name: mine
    meta.helm.sh/release-namespace: home
  labels:
    app: small
    app.kubernetes.io/managed-by: Helm
  name: small-1
  namespace: home
`, got)
}

func TestRender_GivesTheSameBytesEachTime(t *testing.T) {
	first, err := render(t, nil)
	require.NoError(t, err)
	for range 20 {
		again, err := render(t, nil)
		require.NoError(t, err)
		require.Equal(t, first, again)
	}
}

func TestRender_KnowsWhatTheClusterServes(t *testing.T) {
	got, err := render(t, func(r *chart.Release) { r.APIVersions = []string{"example.com/v1/Widget"} })
	require.NoError(t, err)
	assert.Contains(t, got, `widgets: "true"`)
	again, err := render(t, nil)
	require.NoError(t, err)
	assert.Contains(t, again, `widgets: "false"`, "one rendering leaves nothing behind for the next")
}

func TestRender_RefusesWhatCannotWork(t *testing.T) {
	for problem, change := range map[string]func(*chart.Release){
		"Job late is a hook, which nothing would run":     func(r *chart.Release) { r.Values = map[string]any{"hook": true} },
		"small/templates/broken.yaml: rendered something": func(r *chart.Release) { r.Values = map[string]any{"broken": true} },
		"size":                                func(r *chart.Release) { r.Values = map[string]any{"size": "large"} },
		`kubernetesVersion: "" is no version`: func(r *chart.Release) { r.KubernetesVersion = "" },
		"wants Kubernetes >=1.30.0-0, not v1.29.0": func(r *chart.Release) { r.KubernetesVersion = "v1.29.0" },
	} {
		_, err := render(t, change)
		assert.ErrorContains(t, err, problem)
	}
}

func TestRead_RefusesWhatIsNoChart(t *testing.T) {
	_, err := chart.Read([]byte("<html>"))
	assert.ErrorContains(t, err, "chart archive: ")
}
