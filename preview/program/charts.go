package program

import "github.com/slipway-platform/slipway/preview/report"

// Charts returns the Helm releases that a program registers.
func Charts(p report.Program) []report.Chart {
	var charts []report.Chart
	for _, resource := range p.Resources {
		if resource.Type != "kubernetes:helm.sh/v3:Release" {
			continue
		}
		text := func(tree map[string]any, key string) string {
			value, _ := tree[key].(string)
			return value
		}
		repository, _ := resource.Inputs["repositoryOpts"].(map[string]any)
		values, _ := resource.Inputs["values"].(map[string]any)
		charts = append(charts, report.Chart{
			Name: text(resource.Inputs, "name"), Namespace: text(resource.Inputs, "namespace"), Chart: text(resource.Inputs, "chart"),
			Version: text(resource.Inputs, "version"), Repository: text(repository, "repo"), Values: values,
		})
	}
	return charts
}
