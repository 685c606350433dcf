package charts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

// render returns the objects of a release of the chart in an archive, by KIND NAME.
func render(t *testing.T, archive, name, namespace string, values map[string]any) map[string]map[string]any {
	t.Helper()
	chart, err := loader.Load(archive)
	require.NoError(t, err)
	require.NoError(t, chartutil.ProcessDependencies(chart, values))
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: name, Namespace: namespace}, nil)
	require.NoError(t, err)
	files, err := engine.Render(chart, all)
	require.NoError(t, err)
	objects := map[string]map[string]any{}
	for path, text := range files {
		for _, document := range strings.Split(text, "\n---") {
			var object map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(document), &object), "%s\n%s", path, document)
			if kind, is := object["kind"].(string); is {
				objects[kind+" "+object["metadata"].(map[string]any)["name"].(string)] = object
			}
		}
	}
	return objects
}

func at(t *testing.T, object map[string]any, path ...string) any {
	t.Helper()
	for _, key := range path[:len(path)-1] {
		next, is := object[key].(map[string]any)
		require.True(t, is, "%v", path)
		object = next
	}
	return object[path[len(path)-1]]
}

func TestCoreDNS_MakesTheObjectsOfTheRealChart(t *testing.T) {
	archive, err := Pack("coredns", t.TempDir())
	require.NoError(t, err)
	objects := render(t, archive, "coredns", "kube-system", map[string]any{
		"replicaCount": 3, "k8sAppLabelOverride": "kube-dns", "serviceAccount": map[string]any{"create": true},
		"service": map[string]any{"name": "kube-dns", "clusterIP": "10.245.0.10", "clusterIPs": []any{"10.245.0.10", "fd00::a"},
			"ipFamilyPolicy": "RequireDualStack"},
	})
	for _, name := range []string{"ConfigMap coredns", "Deployment coredns", "Service kube-dns", "ServiceAccount coredns", "ClusterRole coredns", "ClusterRoleBinding coredns"} {
		require.Contains(t, objects, name)
	}
	service := objects["Service kube-dns"]
	require.Equal(t, "10.245.0.10", at(t, service, "spec", "clusterIP"))
	require.Equal(t, []any{"10.245.0.10", "fd00::a"}, at(t, service, "spec", "clusterIPs"))
	require.Equal(t, at(t, objects["Deployment coredns"], "spec", "selector", "matchLabels"), at(t, service, "spec", "selector"))
	require.Contains(t, at(t, objects["ConfigMap coredns"], "data", "Corefile"), "kubernetes cluster.local in-addr.arpa ip6.arpa {\n")
}

func TestSpegel_MakesTheObjectsOfTheRealChart(t *testing.T) {
	archive, err := Pack("spegel", t.TempDir())
	require.NoError(t, err)
	objects := render(t, archive, "spegel", "spegel", map[string]any{"spegel": map[string]any{
		"containerdRegistryConfigPath": "/etc/cri/conf.d/hosts", "prependExisting": true,
		"mirroredRegistries": []any{"_default", "https://docker.io"},
	}})
	for _, name := range []string{"DaemonSet spegel", "Service spegel", "Service spegel-registry", "Service spegel-bootstrap", "ServiceAccount spegel"} {
		require.Contains(t, objects, name)
	}
	text, err := yaml.Marshal(objects["DaemonSet spegel"])
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(text), "/etc/cri/conf.d/hosts"), "%s", text)
	require.Equal(t, 2, strings.Count(string(text), "- --mirrored-registries\n"), "%s", text)
	require.Equal(t, 2, strings.Count(string(text), "- _default\n"), "%s", text)
	require.Contains(t, string(text), "--prepend-existing=true")
}

func TestCharts_FindAMisspeltValue(t *testing.T) {
	for _, name := range []string{"coredns", "spegel", "connect"} {
		archive, err := Pack(name, t.TempDir())
		require.NoError(t, err)
		chart, err := loader.Load(archive)
		require.NoError(t, err)
		_, err = chartutil.ToRenderValues(chart, map[string]any{"toleration": []any{}}, chartutil.ReleaseOptions{}, nil)
		require.ErrorContains(t, err, "toleration", name)
	}
}

func TestVersioned_CarriesTheVersionOfItsRelease(t *testing.T) {
	source := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(source, "Chart.yaml"),
		[]byte("apiVersion: v2\nname: cert-manager\nversion: v0.0.0\nappVersion: v0.0.0\n"), 0o600))
	archive, err := Own(t.TempDir(), source, "v1.21.2")
	require.NoError(t, err)
	chart, err := loader.Load(archive)
	require.NoError(t, err)
	require.Equal(t, "v1.21.2", chart.Metadata.Version)
	require.Equal(t, "v1.21.2", chart.Metadata.AppVersion)
}

func TestConnect_MakesTheObjectsOfTheRealChart(t *testing.T) {
	archive, err := Pack("connect", t.TempDir())
	require.NoError(t, err)
	objects := render(t, archive, "connect", "onepassword", map[string]any{"connect": map[string]any{"credentialsName": "ours"}})
	require.Len(t, objects, 2, "the Secret with the credentials is the caller's")
	pod := at(t, objects["Deployment onepassword-connect"], "spec", "template", "spec").(map[string]any)
	require.Equal(t, at(t, objects["Service onepassword-connect"], "spec", "selector"),
		at(t, objects["Deployment onepassword-connect"], "spec", "selector", "matchLabels"))
	var images []any
	for _, c := range pod["containers"].([]any) {
		images = append(images, c.(map[string]any)["image"])
	}
	require.Equal(t, []any{"docker.io/1password/connect-api:1.8.2", "docker.io/1password/connect-sync:1.8.2"}, images)
	volume := pod["volumes"].([]any)[1].(map[string]any)
	require.Equal(t, "ours", at(t, volume, "secret", "secretName"))
}

func TestConnect_TakesItsKeyOfTLSButNotTLS(t *testing.T) {
	archive, err := Pack("connect", t.TempDir())
	require.NoError(t, err)
	chart, err := loader.Load(archive)
	require.NoError(t, err)
	for on, problem := range map[bool]string{false: "", true: "tls"} {
		values := map[string]any{"connect": map[string]any{"tls": map[string]any{"enabled": on}}}
		_, err = chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{}, nil)
		if !on {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, problem)
	}
}

func TestConnect_WritesCredentialsAsTheRealChartDoes(t *testing.T) {
	archive, err := Pack("connect", t.TempDir())
	require.NoError(t, err)
	for key, value := range map[string]string{"credentials": "{}", "credentials_base64": "e30="} {
		objects := render(t, archive, "connect", "onepassword", map[string]any{"connect": map[string]any{key: value}})
		require.Equal(t, "e30=", at(t, objects["Secret op-credentials"], "data", "1password-credentials.json"), key)
	}
}

func TestOwnCharts_AreTheProjects(t *testing.T) {
	source := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(source, "Chart.yaml"),
		[]byte("apiVersion: v2\nname: x\nversion: 0.20.3\nappVersion: v0.20.3\ndependencies: [{name: y, version: 1.0.0, repository: oci://example.com}]\n"), 0o600))
	archive, err := ExternalSecrets(t.TempDir(), source, "2.9.0", "0.20.4")
	require.NoError(t, err)
	chart, err := loader.Load(archive)
	require.NoError(t, err)
	require.Equal(t, "2.9.0", chart.Metadata.Version)
	require.Equal(t, "v0.20.4", chart.Metadata.AppVersion)
	require.Empty(t, chart.Metadata.Dependencies, "Helm refuses a chart whose dependencies are missing")
	archive, err = ArgoCD(t.TempDir(), source)
	require.NoError(t, err)
	chart, err = loader.Load(archive)
	require.NoError(t, err)
	require.Equal(t, "0.20.3", chart.Metadata.Version)
	require.Empty(t, chart.Metadata.Dependencies)
	for version, want := range map[string]string{"": "0.20.3", "0.21.0": "0.21.0"} {
		archive, err = Own(t.TempDir(), source, version)
		require.NoError(t, err)
		chart, err = loader.Load(archive)
		require.NoError(t, err)
		require.Equal(t, want, chart.Metadata.Version)
	}
}

func TestVictoriaMetrics_MakesWhatItsValuesSay(t *testing.T) {
	archive, err := Pack("victoria-metrics-k8s-stack", t.TempDir())
	require.NoError(t, err)
	objects := render(t, archive, "stack", "observability", map[string]any{
		"fullnameOverride": "stack", "grafana": map[string]any{"fullnameOverride": "grafana"},
		"victoria-metrics-operator": map[string]any{"fullnameOverride": "victoria-metrics-operator",
			"resources": map[string]any{"requests": map[string]any{"cpu": "50m"}}},
		"vmsingle": map[string]any{"spec": map[string]any{"retentionPeriod": "30d"}},
	})
	for _, name := range []string{"Deployment victoria-metrics-operator", "Deployment grafana", "Service grafana",
		"Deployment stack-kube-state-metrics",
		"DaemonSet stack-prometheus-node-exporter", "VMSingle stack", "VMAgent stack", "VMAlert stack", "VMAlertmanager stack"} {
		require.Contains(t, objects, name)
	}
	require.Equal(t, "30d", at(t, objects["VMSingle stack"], "spec", "retentionPeriod"))
	require.Equal(t, "8428", at(t, objects["VMSingle stack"], "spec", "port"))
	for name := range objects {
		require.NotContains(t, name, "CustomResourceDefinition")
	}
}

func TestCloudNativePG_MakesTheOperatorWithoutWebhooks(t *testing.T) {
	archive, err := Pack("cloudnative-pg", t.TempDir())
	require.NoError(t, err)
	objects := render(t, archive, "cloudnative-pg", "cnpg-system", map[string]any{"replicaCount": 2, "crds": map[string]any{"create": false},
		"monitoring": map[string]any{"podMonitorEnabled": true}})
	require.Len(t, objects, 4)
	require.InDelta(t, 2, at(t, objects["Deployment cloudnative-pg"], "spec", "replicas"), 0)
}

// As of the original: who gives no name gets another one than that of the release.
func TestPodinfo_NamesItsServiceAsTheRealChartDoes(t *testing.T) {
	archive, err := Pack("podinfo", t.TempDir())
	require.NoError(t, err)
	for release, want := range map[string]string{"notes": "notes-podinfo", "podinfo": "podinfo", "podinfo-2": "podinfo-2"} {
		require.Contains(t, render(t, archive, release, "notes", nil), "Service "+want)
	}
	objects := render(t, archive, "notes", "notes", map[string]any{"fullnameOverride": "notes"})
	require.Len(t, objects, 2)
	require.Equal(t, at(t, objects["Deployment notes"], "spec", "template", "metadata", "labels"),
		at(t, objects["Service notes"], "spec", "selector"))
}

func TestChartsOfTheTree_RefuseUnknownValues(t *testing.T) {
	for _, name := range []string{"victoria-metrics-k8s-stack", "cloudnative-pg", "podinfo"} {
		archive, err := Pack(name, t.TempDir())
		require.NoError(t, err)
		chart, err := loader.Load(archive)
		require.NoError(t, err)
		_, err = chartutil.ToRenderValues(chart, map[string]any{"gone": true}, chartutil.ReleaseOptions{}, nil)
		require.ErrorContains(t, err, "gone")
	}
}

func TestRook_IsPackagedWithItsPartsAndTheVersionOfTheRelease(t *testing.T) {
	source := t.TempDir()
	for name, text := range map[string]string{
		"chart/Chart.yaml": "apiVersion: v2\nname: rook-ceph\nversion: 0.0.1\ndependencies:\n" +
			"  - {name: library, version: 0.0.1, repository: \"file://../library\"}\n" +
			"  - {name: ceph-csi-operator, version: 1.0.4, repository: \"https://example.com\", condition: csi.installCsiOperator}\n",
		"chart/values.yaml":             "csi: {installCsiOperator: true}\n",
		"chart/templates/a.yaml":        "kind: ConfigMap\nmetadata: {name: {{ include \"library.name\" . }}}\n",
		"library/Chart.yaml":            "apiVersion: v2\nname: library\nversion: 0.0.1\ntype: library\n",
		"library/templates/_a.tpl":      "{{ define \"library.name\" }}{{ .Chart.Version }}{{ end }}",
		"csi-operator/Chart.yaml":       "apiVersion: v2\nname: ceph-csi-operator\nversion: 0.2.0\n",
		"csi-operator/templates/a.yaml": "kind: Deployment\nmetadata: {name: csi-{{ .Chart.Version }}}\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(source, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(source, name), []byte(text), 0o600))
	}
	archive, err := Rook(t.TempDir(), source, "v1.2.3")
	require.NoError(t, err)
	objects := render(t, archive, "rook-ceph", "rook-ceph", nil)
	require.Contains(t, objects, "ConfigMap v1.2.3")
	require.Contains(t, objects, "Deployment csi-1.0.4")
	require.NotContains(t, render(t, archive, "rook-ceph", "rook-ceph",
		map[string]any{"csi": map[string]any{"installCsiOperator": false}}), "Deployment csi-1.0.4")
}
