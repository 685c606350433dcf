package tree

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/VictoriaMetrics/metricsql"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ciliumMetrics are the metrics of Cilium that rules may use, with the files of Cilium 1.18 that name each. A rule about a metric that
// does not exist never fires, and nothing says so: look a new metric up there before you add it here.
var ciliumMetrics = map[string]string{
	"cilium_bgp_control_plane_session_state":             "pkg/bgpv1/metrics/metrics.go",
	"cilium_bpf_map_pressure":                            "pkg/metrics/metrics.go",
	"cilium_clustermesh_remote_cluster_failures":         "pkg/clustermesh/common/metrics.go, pkg/clustermesh/clustermesh.go",
	"cilium_clustermesh_remote_cluster_readiness_status": "pkg/clustermesh/common/metrics.go, pkg/clustermesh/clustermesh.go",
	"cilium_controllers_failing":                         "pkg/metrics/status.go",
	"cilium_drop_count_total":                            "pkg/maps/metricsmap/metricsmap.go",
	"cilium_endpoint_regenerations_total":                "pkg/metrics/metrics.go",
	"cilium_endpoint_state":                              "pkg/metrics/metrics.go",
	"cilium_kvstoremesh_remote_cluster_failures":         "pkg/clustermesh/common/metrics.go, clustermesh-apiserver/kvstoremesh/root.go",
	"cilium_kvstoremesh_remote_cluster_readiness_status": "pkg/clustermesh/common/metrics.go, clustermesh-apiserver/kvstoremesh/root.go",
	"cilium_operator_lbipam_conflicting_pools":           "operator/pkg/lbipam/metrics.go",
	"cilium_operator_lbipam_services_unsatisfied":        "operator/pkg/lbipam/metrics.go",
	"cilium_policy_change_total":                         "pkg/metrics/metrics.go",
	"cilium_unreachable_nodes":                           "pkg/metrics/status.go",
}

// fluxMetrics are the metrics of Flux that dashboards may use, with the files that name each.
var fluxMetrics = map[string]string{
	"flux_resource_info":                     "flux-operator: internal/reporter/metrics.go",
	"gotk_reconcile_duration_seconds_bucket": "fluxcd/pkg: runtime/metrics/recorder.go",
	"gotk_reconcile_duration_seconds_count":  "fluxcd/pkg: runtime/metrics/recorder.go",
}

// expressions: VictoriaMetrics can read the expressions of all rules and dashboards, and Cilium and Flux have the metrics that they name.
func expressions(t *tree) {
	t.each(func(layer Layer, object Object) {
		for name, text := range expressionsOf(t, layer, object) {
			expression, err := metricsql.Parse(text)
			if err != nil {
				t.found(layer, object, "%s: %v", name, err)
				continue
			}
			for _, metric := range metricsOf(expression) {
				_, ofCilium := ciliumMetrics[metric]
				_, ofFlux := fluxMetrics[metric]
				if prefix, _, _ := strings.Cut(metric, "_"); !ofCilium && !ofFlux && slices.Contains([]string{"cilium", "flux", "gotk"}, prefix) {
					t.found(layer, object, "%s: there is no known metric %s", name, metric)
				}
			}
		}
	})
}

// dashboardLabel marks the ConfigMaps that Grafana reads.
const dashboardLabel = "grafana_dashboard"

// expressionsOf returns the expressions of an object by the names of alerts, or of the panels of dashboards.
func expressionsOf(t *tree, layer Layer, object Object) map[string]string {
	found := map[string]string{}
	switch {
	case object.Is("monitoring.coreos.com", "PrometheusRule"), object.Is("operator.victoriametrics.com", "VMRule"):
		for _, group := range object.List("spec", "groups") {
			for _, one := range list(group, "rules") {
				name, _ := one["alert"].(string)
				if name == "" {
					name, _ = one["record"].(string)
				}
				found[name], _ = one["expr"].(string)
			}
		}
	case object.Is("", "ConfigMap") && object.GetLabels()[dashboardLabel] != "":
		files, _, _ := unstructured.NestedStringMap(object.Object, "data")
		for file, text := range files {
			var board struct {
				Panels []struct {
					Title   string
					Targets []struct{ Expr string }
				}
			}
			if err := json.Unmarshal([]byte(text), &board); err != nil || len(board.Panels) == 0 {
				t.found(layer, object, "%s: is no dashboard with panels: %v", file, err)
			}
			for _, panel := range board.Panels {
				for _, target := range panel.Targets {
					found[file+": "+panel.Title] = target.Expr
				}
			}
		}
	}
	return found
}

// metricsOf returns the names of the metrics in an expression.
func metricsOf(expression metricsql.Expr) (names []string) {
	metricsql.VisitAll(expression, func(part metricsql.Expr) {
		metric, is := part.(*metricsql.MetricExpr)
		if !is {
			return
		}
		for _, filters := range metric.LabelFilterss {
			for _, filter := range filters {
				if filter.Label == "__name__" {
					names = append(names, filter.Value)
				}
			}
		}
	})
	return names
}
