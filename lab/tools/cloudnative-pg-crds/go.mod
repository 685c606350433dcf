module github.com/slipway-platform/slipway/lab/tools/cloudnative-pg-crds

go 1.26.0

require github.com/cloudnative-pg/cloudnative-pg v1.27.0
