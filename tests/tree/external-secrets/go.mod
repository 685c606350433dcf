// The newest release of External Secrets Operator whose sources the Go module proxy serves everywhere. Slipway pins a newer one.
module github.com/slipway-platform/slipway/tests/tree/external-secrets

go 1.26.0

require github.com/external-secrets/external-secrets v1.3.2
