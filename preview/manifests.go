//go:build charts

package main

import (
	"context"

	"github.com/slipway-platform/slipway/preview/charts"
	"github.com/slipway-platform/slipway/preview/checkout"
)

// addManifests renders the charts of the stacks of both sides. It links Helm, which takes longer to compile than all the rest of this
// command.
func addManifests(ctx context.Context, o options, both [][]checkout.Stack) {
	renderer := charts.Renderer{Folders: o.charts}
	if o.fetch {
		renderer.Fetcher = &charts.Fetcher{Folder: o.charts[0]}
	}
	for _, stacks := range both {
		for _, stack := range stacks {
			if stack.Cluster == nil {
				continue
			}
			renderer.Kubernetes = stack.Cluster.Kubernetes.Version
			for i := range stack.Charts {
				renderer.Add(ctx, &stack.Charts[i])
			}
		}
	}
}
