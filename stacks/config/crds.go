package config

import "github.com/slipway-platform/slipway/components/core/pins"

// NamedCRDs is a set of definitions together with what its project is.
type NamedCRDs struct {
	Set    pins.Set
	Source CRDSource // defaults filled in; not skipped
}

// Sources lists the sets that are to be installed, in the order of the model.
func (c CRDs) Sources() []NamedCRDs {
	var sources []NamedCRDs
	for _, one := range c.all() {
		if !one.source.Skip {
			sources = append(sources, NamedCRDs{Set: one.set, Source: *one.source})
		}
	}
	return sources
}

// crdSet is a set and where the stack says that it comes from.
type crdSet struct {
	set    pins.Set
	source *CRDSource
}

func (c *CRDs) all() []crdSet {
	return []crdSet{
		{pins.GatewayAPI, &c.GatewayAPI},
		{pins.CertManager, &c.CertManager},
		{pins.ExternalSecrets, &c.ExternalSecrets},
		{pins.VictoriaMetrics, &c.VictoriaMetrics},
		{pins.PrometheusOperator, &c.PrometheusOperator},
		{pins.CloudNativePG, &c.CloudNativePG},
	}
}

// fill gives each set its release and manifest. Those of cert-manager follow its chart.
func (c *CRDs) fill(s *Stack) {
	fill(&c.CertManager.Version, s.CertManager.Version)
	for _, one := range c.all() {
		fill(&one.source.Version, one.set.Version)
		fill(&one.source.URL, one.set.URL(one.source.Version))
	}
}
