module github.com/slipway-platform/slipway/lab/tools/prometheus-operator-crds

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
