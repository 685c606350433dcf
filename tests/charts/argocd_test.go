package charts

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"github.com/slipway-platform/slipway/cluster"
)

// argoCD renders the chart argo-cd with what Slipway sets, and values of the user's own.
func argoCD(t *testing.T, given string) []object {
	t.Helper()
	return argoCDBy(t, given, nil)
}

// argoCDBy renders it after a change of the chart and of the release.
func argoCDBy(t *testing.T, given string, change func(*chart.Chart, *chartutil.ReleaseOptions)) []object {
	t.Helper()
	c := cluster.New("infra")
	c.GitOps.Engine, c.GitOps.URL = cluster.EngineArgoCD, "https://git.home.arpa:8443/platform/slipway.git"
	c.GitOps.CA, c.GitOps.KnownHosts, c.GitOps.ArgoCD.Values = "OWN-CA", "OWN-HOSTS", cluster.ChartValues(given)
	in := inModules["argo-cd"]
	dir, err := moduleOf(in.of, in.module)
	require.NoError(t, err)
	loaded, err := loader.LoadDir(filepath.Join(dir, in.folder))
	require.NoError(t, err)
	service := c.ArgoCDService()
	values, err := service.UserValues.MergedInto(service.Values)
	require.NoError(t, err)
	release := chartutil.ReleaseOptions{Name: service.Name, Namespace: service.Namespace, IsInstall: true}
	if change != nil {
		change(loaded, &release)
	}
	require.NoError(t, chartutil.ProcessDependencies(loaded, values))
	all, err := chartutil.ToRenderValues(loaded, values, release, chartutil.DefaultCapabilities)
	require.NoError(t, err)
	files, err := engine.Render(loaded, all)
	require.NoError(t, err)
	var objects []object
	for name, text := range files {
		if strings.HasSuffix(name, ".yaml") && !strings.Contains(name, "/crds/") && strings.TrimSpace(text) != "" {
			objects = append(objects, decode(t, text)...)
		}
	}
	return objects
}

func TestArgoCD_RendersManifestsWithTheClusterSettings(t *testing.T) {
	objects := argoCD(t, "")
	plugin, _ := one(t, objects, "ConfigMap", "argocd-cmp-cm").at("data").(map[string]any)
	assert.Contains(t, plugin["cluster-settings.yaml"], `name: cluster-settings`)
	containers, _ := one(t, objects, "Deployment", "argocd-repo-server").at("spec.template.spec.containers").([]any)
	require.Len(t, containers, 2)
	main, own := containers[0].(map[string]any), containers[1].(map[string]any)
	if main["name"] == "cluster-settings" {
		main, own = own, main
	}
	assert.Equal(t, main["image"], own["image"], "the plugin needs bash, perl and kustomize, which Argo CD's image has")
	script := ""
	for _, entry := range own["env"].([]any) {
		if variable := entry.(map[string]any); variable["name"] == "CLUSTER_SETTINGS_PLUGIN" {
			script = variable["value"].(string)
		}
	}
	assert.Contains(t, script, `' "$SETTINGS_DIR"`, "the chart has changed nothing of the script")
	assert.Contains(t, script, `s/(\$\$)|\$\{([^{}]*)\}/defined $1 ? "\$" : replaced($2)/ge`)
}

// Argo CD renders its own release by helm template: always as a new one, and with Helm 4, which leaves out defaults that are null.
func TestArgoCD_RendersItselfAsPulumiHasInstalledIt(t *testing.T) {
	assert.ElementsMatch(t, argoCD(t, ""), argoCDBy(t, "", func(loaded *chart.Chart, _ *chartutil.ReleaseOptions) {
		loaded.Values = nullsLeftOut(loaded.Values)
	}))
	assert.ElementsMatch(t, argoCD(t, ""), argoCDBy(t, "", func(_ *chart.Chart, release *chartutil.ReleaseOptions) {
		release.IsInstall, release.IsUpgrade, release.Revision = false, true, 3
	}), "Pulumi upgrades it, before it hands it over and after it has taken it back")
}

func TestArgoCD_GetsTheConfigurationOfTheHandover(t *testing.T) {
	objects := argoCD(t, "")
	text := func(name, key string) any {
		data, _ := one(t, objects, "ConfigMap", name).at("data").(map[string]any)
		return data[key]
	}
	assert.Equal(t, "annotation", text("argocd-cm", "application.resourceTrackingMethod"))
	assert.Equal(t, "60s", text("argocd-cm", "timeout.reconciliation"))
	assert.Contains(t, text("argocd-cm", "resource.customizations.health.argoproj.io_Application"), "hs.status")
	assert.Equal(t, "true", text("argocd-cmd-params-cm", "controller.diff.server.side"))
	assert.Equal(t, "true", text("argocd-cmd-params-cm", "controller.resource.health.persist"))
	assert.Equal(t, "OWN-CA", text("argocd-tls-certs-cm", "git.home.arpa"))
	assert.Contains(t, text("argocd-ssh-known-hosts-cm", "ssh_known_hosts"), "OWN-HOSTS")
	assert.Contains(t, text("argocd-ssh-known-hosts-cm", "ssh_known_hosts"), "github.com", "those of the chart stay")
}

func TestArgoCD_RunsNothingThatHasNoConfiguration(t *testing.T) {
	names := func(given string) (all []string) {
		for _, object := range argoCD(t, given) {
			if object.text("kind") == "Deployment" {
				all = append(all, object.text("metadata.name"))
			}
		}
		return all
	}
	assert.ElementsMatch(t, []string{"argocd-applicationset-controller", "argocd-repo-server", "argocd-server", "argocd-redis"}, names(""))
	assert.Contains(t, names(`{"dex":{"enabled":true}}`), "argocd-dex-server")
	assert.Contains(t, names(`{"notifications":{"enabled":true}}`), "argocd-notifications-controller")
}
