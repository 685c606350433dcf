// Slipway creates a Talos Linux Kubernetes cluster on Proxmox VE and hands it over to Flux. Package cmd documents the command.
package main

import "github.com/slipway-platform/slipway/cmd"

func main() { cmd.Main() }
