module github.com/slipway-platform/slipway/lab/tools/rook-crds

go 1.26.0

require (
	github.com/ceph/ceph-csi-operator v1.0.4
	github.com/rook/rook v1.20.6
)
