// Package v2 replaces one file of the Kubernetes SDK in the plugin's build. That file names every kind of Kubernetes, so
// that the components ConfigFile, ConfigGroup and Chart of the plugin can register objects with typed outputs. Nothing
// reads those outputs inside a plugin, and compiling the types takes half of its build.
package v2

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// object is an object of any kind, without typed outputs.
type object struct{ pulumi.CustomResourceState }

// RegisterResource registers an object under the token of its kind.
func RegisterResource(
	ctx *pulumi.Context, apiVersion, kind, name string, props pulumi.Input, opts ...pulumi.ResourceOption,
) (pulumi.CustomResource, error) {
	registered := &object{}
	if err := ctx.RegisterResource(fmt.Sprintf("kubernetes:%s:%s", apiVersion, kind), name, props, registered, opts...); err != nil {
		return nil, err
	}
	return registered, nil
}
