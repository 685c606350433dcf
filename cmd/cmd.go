// Package cmd is the command slipway: the Pulumi program, the probe and the check of stack files in one binary.
package cmd

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/cmd/check"
	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/cmd/newcluster"
	"github.com/slipway-platform/slipway/cmd/probe"
)

// program is the name of the command. It is on PATH, or in the folder bin of the project.
const program = "slipway"

// Command returns the command with its subcommands.
func Command() *cobra.Command {
	return command.Group(
		&cobra.Command{Use: program, Long: `Without a subcommand it is the Pulumi program, which "pulumi up" starts.`},
		check.Command("check"), check.HandOver("handover-file"), check.MeshCA("mesh-ca"),
		newcluster.Command(command.Version()), newcluster.Manifests(command.Version()), probe.Command("probe"), versionCommand(),
	)
}

func versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs, Run: func(c *cobra.Command, _ []string) {
		version := command.Version()
		_, _ = fmt.Fprintf(c.OutOrStdout(), "%s %s %s/%s %s\n", program, version, runtime.GOOS, runtime.GOARCH, runtime.Version())
	}}
}

// Main runs the command for this process, and ends it. Without arguments it is the Pulumi program, which Pulumi starts.
func Main() {
	if len(os.Args) == 1 && os.Getenv(pulumi.EnvMonitor) != "" {
		pulumi.Run(deploy)
		return
	}
	os.Exit(command.Run(context.Background(), Command(), os.Args[1:]))
}
