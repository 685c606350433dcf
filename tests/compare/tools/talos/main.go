// terraform-provider-talos is siderolabs' provider for Terraform and OpenTofu, with the Talos machinery of the Pulumi plugin that the
// lab builds.
package main

import (
	"context"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/siderolabs/terraform-provider-talos/pkg/talos"
)

func main() {
	if err := providerserver.Serve(context.Background(), talos.New, providerserver.ServeOpts{
		Address: "registry.terraform.io/siderolabs/talos",
	}); err != nil {
		log.Fatal(err)
	}
}
