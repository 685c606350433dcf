//go:build !charts

package main

import "github.com/slipway-platform/slipway/preview/checkout"

// addManifests says that no chart is rendered.
func addManifests(_ options, stack *checkout.Stack) {
	for i := range stack.Charts {
		stack.Charts[i].Unrendered = "no folder with charts was given (CHARTS)"
	}
}
