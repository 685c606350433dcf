module github.com/slipway-platform/slipway/lab/tools/cloudnative-pg-crds

go 1.26.4

require github.com/cloudnative-pg/cloudnative-pg v1.30.0
