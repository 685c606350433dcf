// Command config-check is `slipway check` alone, with `slipway handover-file` as its subcommand handover, and `slipway mesh-ca`: built from
// source, it links no Pulumi. Package check documents it.
//
//	config-check                       # all Pulumi.*.yaml of this folder, or the nearest one above that has any
//	config-check infra                 # Pulumi.infra.yaml, of this folder or one above
//	config-check path/to/Pulumi.x.yaml
//	config-check handover infra cilium # write the file with which Flux takes over a component
package main

import (
	"context"
	"os"

	"github.com/slipway-platform/slipway/cmd/check"
	"github.com/slipway-platform/slipway/cmd/command"
)

func main() {
	c := check.Command("config-check")
	c.AddCommand(check.HandOver("handover"), check.MeshCA("mesh-ca"))
	os.Exit(command.Run(context.Background(), c, os.Args[1:]))
}
