module github.com/slipway-platform/slipway/lab/tools/rook-crds

go 1.26.0

require github.com/rook/rook v1.19.6
