package stacks

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/stacks/steps"
)

func TestChain_HasWorkForEachComponentOfTheSteps(t *testing.T) {
	var components []string
	for _, step := range steps.Chain() {
		components = append(components, step.Components...)
	}
	assert.ElementsMatch(t, components, slices.Collect(maps.Keys((&chain{}).work())))
}
