package tree

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fluxtree "github.com/slipway-platform/slipway/internal/engines/flux/tree"
)

// Flux's Alerts know no wildcard for namespaces.
func TestAlerts_AreAboutEachObjectOfFlux(t *testing.T) {
	trees := clusters(t)
	for _, stack := range stacks(t) {
		layers, reported, looked := trees[stack.Stack+withMetrics], map[string]bool{}, 0
		alert := named(t, layers, "Alert", "flux")
		for _, source := range alert.List("spec", "eventSources") {
			assert.Equal(t, "*", source["name"])
			namespace, found := source["namespace"]
			if !found {
				namespace = alert.GetNamespace()
			}
			reported[fmt.Sprintf("%v in %v", source["kind"], namespace)] = true
		}
		for _, kind := range []string{"GitRepository", "OCIRepository", "Bucket"} {
			assert.Contains(t, reported, kind+" in "+fluxNamespace, "the source of the handover")
		}
		for _, layer := range layers {
			for _, object := range layer.Objects {
				switch object.GroupVersionKind().Group {
				case kustomizeGroup, helmGroup, sourceGroup:
					looked++
					assert.Contains(t, reported, object.GetKind()+" in "+object.GetNamespace(), "%s: %s", stack.Stack, object.Title())
				}
			}
		}
		assert.Greater(t, looked, 20, stack.Stack)
		assert.Equal(t, "discord", named(t, layers, "Provider", alert.Text("spec", "providerRef", "name")).Text("spec", "type"))
		assert.Equal(t, "error", alert.Text("spec", "eventSeverity"))
	}
}

// vmAlertmanager is Alertmanager as the release of a cluster makes it.
func vmAlertmanager(t *testing.T, layers []Layer) Object {
	t.Helper()
	objects, _, err := Render(named(t, layers, "HelmRelease", "stack"))
	require.NoError(t, err)
	return named(t, []Layer{{Objects: objects}}, "VMAlertmanager", "stack")
}

// alertItems are the items and fields of 1Password that the Secrets alerts are made of, by namespace.
func alertItems(layers []Layer) map[string]string {
	items := map[string]string{}
	for _, layer := range layers {
		for _, object := range layer.Objects {
			if object.GetKind() == "ExternalSecret" && object.GetName() == "alerts" {
				for _, field := range object.List("spec", "data") {
					from, _ := field["remoteRef"].(map[string]any)
					items[object.GetNamespace()] += fmt.Sprintf("%v/%v", from["key"], from["property"])
				}
			}
		}
	}
	return items
}

// The receiver of each service reads the address that Flux's reports use. The operator adds to a route the namespace of its object, unless
// Alertmanager says otherwise: few alerts have that namespace.
func TestAlertmanager_SendsToTheServiceThatTheSettingNames(t *testing.T) {
	known, err := schemas()
	require.NoError(t, err)
	settings, err := fluxtree.Settings(os.DirFS(repository), "kubernetes/clusters/infra")
	require.NoError(t, err)
	services := settings["ALERTMANAGER_TYPE"].Choices
	require.Len(t, services, 4)
	for _, stack := range stacks(t) {
		for _, service := range services {
			layers, err := Build(checkout(t), stack.GitOps.Path, with(stack.Settings(), with(withCloudflare, map[string]string{
				"ALERTMANAGER_TYPE": service,
			})))
			require.NoError(t, err)
			config := named(t, layers, "VMAlertmanagerConfig", "alerts")
			assert.Equal(t, service, config.Text("spec", "route", "receiver"))
			receivers := config.List("spec", "receivers")
			assert.True(t, slices.ContainsFunc(receivers, func(one map[string]any) bool { return one["name"] == service }), service)
			assert.Len(t, addresses(config), len(receivers))
			for _, address := range addresses(config) {
				assert.Equal(t, map[string]any{"name": "alerts", "key": "address"}, address)
			}
			assert.Equal(t, map[string]string{"flux-system": "alerts/address", "observability": "alerts/address"}, alertItems(layers))
			alertmanager := vmAlertmanager(t, layers)
			assert.NoError(t, known.Validate(alertmanager))
			all, _, _ := unstructured.NestedBool(alertmanager.Object, "spec", "disableNamespaceMatcher")
			assert.True(t, all)
			selects, _, _ := unstructured.NestedBool(alertmanager.Object, "spec", "selectAllByDefault")
			assert.True(t, selects, "the value of the original chart, too")
			assert.Equal(t, alertmanager.GetNamespace(), config.GetNamespace())
		}
	}
}

// Without the setting, nothing changes in a cluster: what Flux applies is the folder that it has applied before there was the setting.
func TestAlertmanager_WithoutTheSettingIsAsItWas(t *testing.T) {
	trees := clusters(t)
	for _, stack := range stacks(t) {
		files := checkout(t)
		for _, keys := range []string{"git", "onepassword"} {
			folder := "kubernetes/infrastructure/observability/alertmanager/" + keys + "/none/kustomization.yaml"
			text, err := files.ReadFile(folder)
			require.NoError(t, err)
			assert.True(t, strings.HasSuffix(string(text), "\nkind: Kustomization\nresources:\n  - ../../../metrics\n"), folder)
		}
		_, set, _ := unstructured.NestedFieldNoCopy(vmAlertmanager(t, trees[stack.Stack]).Object, "spec", "disableNamespaceMatcher")
		assert.False(t, set)
	}
}

func TestTree_HasDashboardsOfFluxAndCiliumWhereGrafanaReadsThem(t *testing.T) {
	for cluster, layers := range clusters(t) {
		board := named(t, layers, "ConfigMap", "dashboards")
		assert.Equal(t, "observability", board.GetNamespace(), cluster)
		assert.NotEmpty(t, board.GetLabels()[dashboardLabel], cluster)
		for file, title := range map[string]string{"flux.json": `"title": "Flux"`, "cilium.json": `"title": "Cilium"`} {
			assert.Contains(t, board.Text("data", file), title, cluster)
		}
		named(t, layers, "VMPodScrape", "flux-operator")
	}
}
