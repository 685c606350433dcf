package tree

import (
	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/preview/flux"
)

// Layer is a Kustomization of Flux with what it applies, as the preview of a change builds it.
type Layer = flux.Layer

// Object is an object of a layer.
type Object = flux.Object

// Build builds the tree as the preview of a change does.
var Build = flux.Build

const (
	fluxNamespace  = cluster.FluxNamespace
	rootName       = cluster.FluxSync
	settingsName   = cluster.ClusterSettings
	kustomizeGroup = flux.KustomizeGroup
	helmGroup      = "helm.toolkit.fluxcd.io"
	sourceGroup    = "source.toolkit.fluxcd.io"
)

var (
	list  = flux.List
	clean = flux.Clean
)
