// Slipway takes a cluster from a Proxmox VE API to a Talos Linux Kubernetes cluster that Flux has taken over.
package main

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/stacks"
)

func main() { pulumi.Run(stacks.Deploy) }
