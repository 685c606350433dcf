//go:build !charts

package main

import (
	"context"

	"github.com/slipway-platform/slipway/preview/checkout"
)

// addManifests says that no chart is rendered.
func addManifests(_ context.Context, _ options, both [][]checkout.Stack) {
	for _, stacks := range both {
		for _, stack := range stacks {
			for i := range stack.Charts {
				stack.Charts[i].Unrendered = "no folder with charts was given (CHARTS)"
			}
		}
	}
}
