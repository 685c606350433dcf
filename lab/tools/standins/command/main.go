// pulumi-resource-command is a stand-in for Pulumi's command plugin, which cannot be built from modules.
//
// It has the resource command:local:Command with the inputs, outputs and behaviour of the released one. It has no
// remote commands, functions, or assets.
package main

import (
	"context"
	"fmt"
	"os"

	p "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi-go-provider/infer"

	"github.com/slipway-platform/slipway/lab/tools/standins/command/local"
)

// version is the plugin's version. The linker sets it from the lab's table of tools.
var version = "0.0.0-dev"

func main() {
	provider, err := infer.NewProviderBuilder().
		WithDisplayName("Command").
		WithResources(infer.Resource(&local.Command{})).
		Build()
	if err == nil {
		err = p.RunProvider(context.Background(), "command", version, provider)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pulumi-resource-command:", err)
		os.Exit(1)
	}
}
