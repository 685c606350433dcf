package tree

import "github.com/VictoriaMetrics/metricsql"

// expressions: VictoriaMetrics can read the expressions of all rules.
func expressions(t *tree) {
	t.each(func(layer Layer, object Object) {
		if !object.Is("monitoring.coreos.com", "PrometheusRule") && !object.Is("operator.victoriametrics.com", "VMRule") {
			return
		}
		for _, group := range object.List("spec", "groups") {
			for _, one := range list(group, "rules") {
				text, _ := one["expr"].(string)
				if _, err := metricsql.Parse(text); err != nil {
					t.found(layer, object, "%v: %v", one["alert"], err)
				}
			}
		}
	})
}
