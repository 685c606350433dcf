module github.com/slipway-platform/slipway/lab/tools/gateway-api-crds

go 1.26.0

require sigs.k8s.io/gateway-api v1.6.3
