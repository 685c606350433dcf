module github.com/slipway-platform/slipway/lab/tools/cilium

go 1.26.0

require (
	github.com/cilium/charts v0.0.0-20260213195402-3d62b3c13114
	github.com/cilium/cilium v1.20.2
)
