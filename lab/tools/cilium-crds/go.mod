module github.com/slipway-platform/slipway/lab/tools/cilium-crds

go 1.26.0

require github.com/cilium/cilium v1.18.6
