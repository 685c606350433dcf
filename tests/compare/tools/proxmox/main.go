// terraform-provider-proxmox is bpg's provider for Terraform and OpenTofu, in the version of the Pulumi plugin that the lab builds: make
// compare runs both on the same lab.
package main

import (
	"context"
	"log"

	"github.com/bpg/terraform-provider-proxmox/fwprovider"
	"github.com/bpg/terraform-provider-proxmox/proxmoxtf/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"github.com/hashicorp/terraform-plugin-mux/tf5to6server"
	"github.com/hashicorp/terraform-plugin-mux/tf6muxserver"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

func main() {
	if err := serve(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// serve joins upstream's two providers, one of which speaks the older protocol.
func serve(ctx context.Context) error {
	older, err := tf5to6server.UpgradeServer(ctx, func() tfprotov5.ProviderServer {
		return schema.NewGRPCProviderServer(provider.ProxmoxVirtualEnvironment())
	})
	if err != nil {
		return err
	}
	joined, err := tf6muxserver.NewMuxServer(ctx,
		providerserver.NewProtocol6(fwprovider.New("compare")()),
		func() tfprotov6.ProviderServer { return older },
	)
	if err != nil {
		return err
	}
	return tf6server.Serve("registry.terraform.io/bpg/proxmox", joined.ProviderServer)
}
