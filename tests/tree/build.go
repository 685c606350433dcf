package tree

import (
	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/preview/flux"
)

// What builds the tree is shared with the preview of a change.
type (
	Layer  = flux.Layer
	Object = flux.Object
)

const (
	fluxNamespace  = cluster.FluxNamespace
	rootName       = cluster.FluxSync
	settingsName   = cluster.ClusterSettings
	kustomizeGroup = flux.KustomizeGroup
	helmGroup      = flux.HelmGroup
	sourceGroup    = flux.SourceGroup
)

var (
	Build = flux.Build
	list  = flux.List
	clean = flux.Clean
)
