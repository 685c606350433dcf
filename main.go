// Slipway creates a Talos Linux Kubernetes cluster on Proxmox VE and hands it over to Flux.
package main

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/stacks"
)

func main() { pulumi.Run(stacks.Deploy) }
