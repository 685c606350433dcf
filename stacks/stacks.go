// Package stacks registers the resources of a stack: it loads the configuration, calls the components, and passes the outputs of
// one to the next.
package stacks

import (
	"os"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/stacks/config"
)

// Deploy is the Pulumi program: it creates the running stack's cluster, from VMs to Flux. It loads and checks the whole
// configuration before it registers anything.
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
	for _, advice := range declared.Unaccepted(declared.Advice(time.Now())) {
		if err := ctx.Log.Warn(advice.Error(), nil); err != nil {
			return err
		}
	}
	beside, err := config.Stacks(source.Tree)
	if err != nil {
		return err
	}
	return deploy(ctx, declared, beside)
}
