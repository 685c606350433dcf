// Package stacks turns a stack's configuration into its resources: it calls the components and passes outputs along.
package stacks

import (
	"os"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/stacks/config"
)

// Deploy is the program: it brings the running stack's cluster from VMs to a Flux that has taken over. The configuration is
// loaded and checked as a whole before anything is registered.
func Deploy(ctx *pulumi.Context) error {
	if err := config.CheckText(".", ctx.Stack()); err != nil {
		return err
	}
	source, err := config.FromEngine(ctx, os.Getenv(pulumi.EnvConfig))
	if err != nil {
		return err
	}
	declared, err := config.Load(source)
	if err != nil {
		return err
	}
	return deploy(ctx, declared)
}
