//go:build charts

package main

import (
	"github.com/slipway-platform/slipway/preview/charts"
	"github.com/slipway-platform/slipway/preview/checkout"
)

// addManifests renders the charts of a stack. It links Helm, which takes longer to compile than all the rest of this command.
func addManifests(o options, stack *checkout.Stack) {
	renderer := charts.Renderer{Folders: o.charts, Kubernetes: stack.Cluster.Kubernetes.Version}
	for i := range stack.Charts {
		renderer.Add(&stack.Charts[i])
	}
}
