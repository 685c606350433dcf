// The sources of charts and CRDs that only tests compare with, each in the newest release that the Go module proxy serves everywhere.
module github.com/slipway-platform/slipway/tests/tree/sources

go 1.26.0

require (
	github.com/bitnami/sealed-secrets v0.40.0
	github.com/external-secrets/external-secrets v1.3.2 // Slipway pins a newer one
	github.com/fluxcd/notification-controller v1.9.3 // the patch release of Flux 2.9 that can be had
	sigs.k8s.io/metrics-server v0.9.0
)
