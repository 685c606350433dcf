module github.com/slipway-platform/slipway/lab/tools/argo-cd-chart

go 1.26.0

require github.com/argoproj/argo-helm v0.0.0-20260904222229-3bbb4305eea9
