package charts

import (
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"

	"github.com/slipway-platform/slipway/components/cilium/chart"
)

// installed is the release that Helm's own install action makes of the values and keys, in a cluster that serves the given
// APIs.
func installed(t *testing.T, v variant, apis ...string) *release.Release {
	t.Helper()
	values, err := complete(v.values())
	require.NoError(t, err)
	made, err := install(v.values().Cilium.Version, values, apis...)
	require.NoError(t, err)
	return made
}

func install(version string, values map[string]any, apis ...string) (*release.Release, error) {
	archived, err := chartOf(version)
	if err != nil {
		return nil, err
	}
	install := action.NewInstall(&action.Configuration{
		Releases:     storage.Init(driver.NewMemory()),
		KubeClient:   &kubefake.PrintingKubeClient{Out: io.Discard},
		Capabilities: chartutil.DefaultCapabilities,
		Log:          func(string, ...any) {},
	})
	install.ReleaseName, install.Namespace = chart.ReleaseName, chart.ReleaseNamespace
	install.DryRun, install.ClientOnly = true, true
	if install.KubeVersion, err = chartutil.ParseKubeVersion(kubernetesVersion); err != nil {
		return nil, err
	}
	install.APIVersions = append(slices.Clone(chartutil.DefaultVersionSet), apis...)
	return install.Run(archived, values)
}

// unmarked takes from an object what inline mode adds to what Helm's manifest shows: the mark of ownership, which Helm
// puts on each object while it creates it, and the namespace, which Helm sends with the request.
func unmarked(t *testing.T, o object) object {
	t.Helper()
	metadata := o["metadata"].(map[string]any)
	labels, annotations := metadata["labels"].(map[string]any), metadata["annotations"].(map[string]any)
	assert.Equal(t, "Helm", labels["app.kubernetes.io/managed-by"], o.id())
	assert.Equal(t, "cilium", annotations["meta.helm.sh/release-name"], o.id())
	assert.Equal(t, "kube-system", annotations["meta.helm.sh/release-namespace"], o.id())
	delete(labels, "app.kubernetes.io/managed-by")
	delete(annotations, "meta.helm.sh/release-name")
	delete(annotations, "meta.helm.sh/release-namespace")
	return bare(o)
}

// bare is an object without empty metadata.
func bare(o object) object {
	metadata := o["metadata"].(map[string]any)
	for _, key := range []string{"labels", "annotations"} {
		if below, ok := metadata[key].(map[string]any); !ok || len(below) == 0 {
			delete(metadata, key)
		}
	}
	return o
}

func TestInline_IsWhatHelmInstallsObjectByObject(t *testing.T) {
	for _, v := range everyMinor() {
		t.Run(v.String(), func(t *testing.T) {
			inline, helms := v.rendered(t), decode(t, installed(t, v).Manifest)
			inline = slices.DeleteFunc(inline, func(o object) bool { // in mode helm, resources of their own
				return slices.Contains(meshSecrets(v), o.text("metadata.name"))
			})
			require.Len(t, inline, len(helms))
			require.Greater(t, len(helms), 15)
			for i, want := range helms {
				got := unmarked(t, inline[i])
				if want.at("metadata.namespace") == nil {
					if namespace := got.at("metadata.namespace"); namespace != nil {
						assert.Equal(t, chart.ReleaseNamespace, namespace, got.id())
						delete(got["metadata"].(map[string]any), "namespace")
					}
				}
				assert.Equal(t, bare(withoutNulls(map[string]any(want)).(map[string]any)), got, want.id())
			}
		})
	}
}

// meshSecrets are the names of the Secrets that Slipway makes of the mesh's certificates.
func meshSecrets(v variant) (names []string) {
	for _, certificate := range v.values().MeshCertificates() {
		names = append(names, certificate.Secret)
	}
	return names
}

func TestHelm_LeavesTheMeshsSecretsToSlipway(t *testing.T) {
	for _, version := range versions {
		v := called(t, "mesh")
		v.version = version
		require.Len(t, meshSecrets(v), 4)
		objects := decode(t, installed(t, v).Manifest)
		for _, o := range objects {
			assert.NotContains(t, meshSecrets(v), o.text("metadata.name"), "%s: Helm and Pulumi would both write %s", v, o.id())
		}
		for _, secret := range mounted(podSpecs(objects)["Deployment kube-system/clustermesh-apiserver"], "secret", "name") {
			assert.Contains(t, meshSecrets(v), secret, "%s: without it, the pod never starts", v)
		}
	}
}

func TestHelm_RunsNoHookThatInlineModeWouldLack(t *testing.T) {
	for _, v := range everyMinor() {
		assert.Empty(t, installed(t, v).Hooks, v)
	}
}

func TestHelm_InstallsTheSameWhateverTheClusterServes(t *testing.T) {
	for _, v := range everyMinor() {
		assert.Equal(t, installed(t, v).Manifest,
			installed(t, v, "gateway.networking.k8s.io/v1/GatewayClass", "monitoring.coreos.com/v1", "cert-manager.io/v1").Manifest, v)
	}
}
