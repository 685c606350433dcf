package command

import (
	"cmp"
	"runtime/debug"
)

// Module is the path of this module.
const Module = "github.com/slipway-platform/slipway"

// released is the version of a released binary, which `make release` sets.
var released string

// Version returns the version of this binary.
func Version() string {
	info, _ := debug.ReadBuildInfo() // nil in a binary without
	return versionOf(released, info)
}

// versionOf returns the version of a build: the released version, or else the version of this module, which is the program's or is required
// by it. A module that is replaced, such as by a folder, has none.
func versionOf(released string, info *debug.BuildInfo) string {
	const fromSource = "(devel)"
	if released != "" || info == nil {
		return cmp.Or(released, fromSource)
	}
	modules := append([]*debug.Module{&info.Main}, info.Deps...)
	for _, one := range modules {
		if one.Path == Module && one.Replace == nil {
			return cmp.Or(one.Version, fromSource)
		}
	}
	return fromSource
}
