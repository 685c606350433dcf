package tree

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
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
