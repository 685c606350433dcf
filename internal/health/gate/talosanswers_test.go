package gate

import (
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/health"
)

var _ = fault("talos-api-unreachable", func(c *Cluster) {
	onTalos(c, func(n *TalosNode) {
		*n = TalosNode{Asked: true, Err: &health.Broken{Reason: "Unavailable: no route to host"}}
	}, "infra-worker-2")
})

var _ = fault("talos-api-closed", func(c *Cluster) {
	onTalos(c, func(n *TalosNode) {
		*n = TalosNode{Asked: true, Hint: talosapi.ClosedHint, Err: &health.Broken{Reason: "Unavailable: connection refused"}}
	}, "infra-worker-2")
})

var _ = fault("talos-in-maintenance", func(c *Cluster) {
	onTalos(c, func(n *TalosNode) {
		*n = TalosNode{Asked: true, Hint: "it " + talosapi.ErrMaintenance.Error(),
			Err: &health.Broken{Reason: "Unavailable: x509: certificate signed by unknown authority"}}
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
