// pulumi-resource-kubernetes is the released Kubernetes plugin. Its own main needs files that are generated before a
// release and are not in the module. The two that matter are in the module; the build copies them to this folder.
package main

import (
	_ "embed"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
)

// version is the plugin's version. The linker sets it from the lab's table of tools.
var version = "0.0.0-dev"

//go:embed schema.json
var schema []byte

//go:embed terraform-mapping.json
var mapping []byte

func main() { provider.Serve("kubernetes", version, schema, mapping) }
