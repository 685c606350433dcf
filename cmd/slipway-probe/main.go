// Command slipway-probe is `slipway probe` alone, for programs that are built from source: it links no Pulumi. Package probe documents it.
package main

import (
	"context"
	"os"

	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/cmd/probe"
)

func main() { os.Exit(command.Run(context.Background(), probe.Command("slipway-probe"), os.Args[1:])) }
