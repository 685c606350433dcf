package cmd

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// module is the path of this module.
const module = "github.com/slipway-platform/slipway"

// released is the version of a released binary, which `make release` sets.
var released string

func versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs, Run: func(c *cobra.Command, _ []string) {
		_, _ = fmt.Fprintf(c.OutOrStdout(), "%s %s %s/%s %s\n", program, ownVersion(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	}}
}

// ownVersion returns the version of this binary.
func ownVersion() string {
	info, _ := debug.ReadBuildInfo() // nil in a binary without
	return versionOf(released, info)
}

// versionOf returns the version of a build: the released version, or else the version of this module, which is the program's or is required
// by it.
func versionOf(released string, info *debug.BuildInfo) string {
	const fromSource = "(devel)"
	if released != "" || info == nil {
		return cmp.Or(released, fromSource)
	}
	modules := append([]*debug.Module{&info.Main}, info.Deps...)
	for _, one := range modules {
		if one.Path == module {
			return cmp.Or(one.Version, fromSource)
		}
	}
	return fromSource
}
