module github.com/slipway-platform/slipway/lab/tools/victoriametrics-operator-crds

go 1.26.4

require github.com/VictoriaMetrics/operator v0.72.0
