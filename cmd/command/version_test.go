package command

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestVersion_IsThatOfTheReleaseOrOfTheModule(t *testing.T) {
	ours := debug.Module{Path: Module, Version: "v0.2.0"}
	replaced := debug.Module{Path: Module, Version: "v0.2.0", Replace: &debug.Module{Path: "../slipway"}}
	of := func(one debug.Module) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: "example.com/home"}, Deps: []*debug.Module{&one}}
	}
	assert.Equal(t, "v0.1.0", versionOf("v0.1.0", &debug.BuildInfo{Main: ours}))
	assert.Equal(t, "v0.2.0", versionOf("", &debug.BuildInfo{Main: ours}))
	assert.Equal(t, "v0.2.0", versionOf("", of(ours)))
	assert.Equal(t, "(devel)", versionOf("", of(replaced)), "the folder may have any version")
	assert.Equal(t, "(devel)", versionOf("", &debug.BuildInfo{Main: debug.Module{Path: Module}}))
	assert.Equal(t, "(devel)", versionOf("", nil))
}
