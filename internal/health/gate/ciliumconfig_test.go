package gate

import (
	"strconv"

	"github.com/slipway-platform/slipway/internal/health"
)

var _ = healthyPart(func(spec *Spec, seen *Cluster) {
	seen.Config = health.Seen[Settings]{Synced: true, Items: []Settings{{
		"cluster-name": "infra", "cluster-id": "1", "routing-mode": "tunnel", "enable-ipv4": "true",
		"enable-ipv6": strconv.FormatBool(len(spec.Network.PodCIDRs) > 1), "ipv4-native-routing-cidr": "10.244.0.0/16",
		"external-envoy-proxy": "true",
	}}}
})

var _ = fault("cilium-of-other-settings", func(c *Cluster) {
	c.Config.Items[0]["cluster-id"], c.Config.Items[0]["ipv4-native-routing-cidr"] = "2", "10.246.0.0/16"
	delete(c.Config.Items[0], "routing-mode")
})

var _ = scenario("dual-stack-cilium-off", false, func() (*Spec, *Cluster) {
	spec := dualStack(declared())
	seen := healthy(spec)
	seen.Config.Items[0]["enable-ipv6"] = "false"
	return spec, seen
})
