package tree

import (
	"strings"

	"github.com/VictoriaMetrics/metricsql"
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

// expressions: VictoriaMetrics can read the expressions of all rules, and Cilium has the metrics that they name.
func expressions(t *tree) {
	t.each(func(layer Layer, object Object) {
		if !object.Is("monitoring.coreos.com", "PrometheusRule") && !object.Is("operator.victoriametrics.com", "VMRule") {
			return
		}
		for _, group := range object.List("spec", "groups") {
			for _, one := range list(group, "rules") {
				text, _ := one["expr"].(string)
				expression, err := metricsql.Parse(text)
				if err != nil {
					t.found(layer, object, "%v: %v", one["alert"], err)
					continue
				}
				for _, metric := range metricsOf(expression) {
					if _, is := ciliumMetrics[metric]; !is && strings.HasPrefix(metric, "cilium_") {
						t.found(layer, object, "%v: Cilium has no known metric %s", one["alert"], metric)
					}
				}
			}
		}
	})
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
