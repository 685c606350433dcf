module github.com/slipway-platform/slipway/lab/tools/external-secrets-crds

go 1.26.0

require github.com/external-secrets/external-secrets v0.20.4
