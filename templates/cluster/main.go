// The cluster as Pulumi.${PROJECT}.yaml declares it, by Slipway. `go run . check` checks that file.
package main

import "github.com/slipway-platform/slipway/cmd"

func main() { cmd.Main() }
