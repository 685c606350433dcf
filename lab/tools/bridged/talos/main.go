// pulumi-resource-talos is the Talos plugin: the Pulumi bridge over siderolabs' Terraform provider, with Talos
// machinery in the version for which the SDK's release was made.
//
// There is no generated schema: the program has the SDK, and the engine asks the plugin for resources only.
package main

import (
	"context"

	pf "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/pf/tfbridge"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge/tokens"
	"github.com/siderolabs/terraform-provider-talos/pkg/talos"
)

// version is the plugin's version. The linker sets it from the lab's table of tools.
var version = "0.0.0-dev"

func main() {
	info := tfbridge.ProviderInfo{
		P:            pf.ShimProvider(talos.New()),
		Name:         "talos",
		Version:      version,
		GitHubOrg:    "siderolabs",
		MetadataInfo: tfbridge.NewProviderMetadata([]byte(`{}`)),
	}
	modules := []string{"client", "cluster", "machine", "image_factory"}
	info.MustComputeTokens(tokens.KnownModules("talos_", "index", modules, tokens.MakeStandard("talos")))
	info.SetAutonaming(255, "-")
	pf.Main(context.Background(), "talos", info, pf.ProviderMetadata{
		PackageSchema: []byte(`{"name":"talos","version":"` + version + `"}`),
	})
}
