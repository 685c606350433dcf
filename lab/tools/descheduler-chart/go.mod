module github.com/slipway-platform/slipway/lab/tools/descheduler-chart

go 1.26.0

require sigs.k8s.io/descheduler v0.36.0
