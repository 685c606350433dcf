package gate

import (
	"github.com/slipway-platform/slipway/internal/health"
)

var _ = healthyPart(func(spec *Spec, seen *Cluster) {
	seen.Services = health.Seen[Ranges]{Synced: true, Items: []Ranges{{"kubernetes", spec.Network.ServiceCIDRs}}}
})

var _ = fault("services-of-another-range", func(c *Cluster) { c.Services.Items[0].CIDRs = cidrs("10.96.0.0/12") })
