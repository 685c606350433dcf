module github.com/slipway-platform/slipway/lab/tools/external-dns-chart

go 1.26.0

require sigs.k8s.io/external-dns v0.22.0
