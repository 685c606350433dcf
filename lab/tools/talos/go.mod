module github.com/slipway-platform/slipway/lab/tools/talos

go 1.26.1

require golang.org/x/sys v0.48.0
