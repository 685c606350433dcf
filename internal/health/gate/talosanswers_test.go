package gate

import (
	"github.com/slipway-platform/slipway/internal/health"
)

var _ = fault("talos-api-unreachable", func(c *Cluster) {
	onTalos(c, func(n *TalosNode) {
		*n = TalosNode{Asked: true, Err: &health.Broken{Reason: "Unavailable: no route to host"}}
	}, "infra-worker-2")
})

var _ = fault("talos-api-closed", func(c *Cluster) {
	onTalos(c, func(n *TalosNode) {
		*n = TalosNode{Asked: true, Closed: true, Err: &health.Broken{Reason: "Unavailable: connection refused"}}
	}, "infra-worker-2")
})

var _ = fault("talos-control-plane-unreachable", func(c *Cluster) {
	onTalos(c, func(n *TalosNode) {
		*n = TalosNode{Asked: true, Err: &health.Broken{Reason: "Unavailable: no route to host"}}
	}, "infra-cp-3")
})

var _ = fault("talos-credentials-refused", func(c *Cluster) {
	onTalos(c, func(n *TalosNode) {
		*n = TalosNode{Asked: true, Err: &health.Broken{Reason: "PermissionDenied: not authorized", Hopeless: true}}
	},
		append(controlPlaneNames, "infra-worker-1", "infra-worker-2")...)
})
