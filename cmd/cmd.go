// Package cmd is the command slipway: the Pulumi program, the probe and the check of stack files in one binary.
package cmd

import (
	"fmt"
	"io"
	"os"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cmd/check"
	"github.com/slipway-platform/slipway/cmd/newcluster"
	"github.com/slipway-platform/slipway/cmd/probe"
)

// program is the name of the command. It is on PATH, or in the folder bin of the project.
const program = "slipway"

// usageError is the exit code of wrong arguments.
const usageError = 2

// subcommands, each with its arguments. The result is the exit code.
var subcommands = []struct {
	name, does string
	run        func(command string, args []string) int
}{
	{"check", "check stack files, without a cluster", check.Main},
	{"handover-file", "write the file with which Flux takes over a component", check.HandOver},
	{"new", "write a repository for a cluster", func(command string, args []string) int {
		return newcluster.Main(command, ownVersion(), args)
	}},
	{"probe", "look at a cluster, and wait until it is healthy", probe.Main},
	{"version", "print the version", func(string, []string) int { return printVersion(os.Stdout) }},
}

const usageEnd = `
"slipway check -h" and so on say more. Without a subcommand it is the Pulumi program, which "pulumi up" starts.
`

// Main runs the command for this process, and ends it. Without arguments it is the Pulumi program, which Pulumi starts.
func Main() {
	if len(os.Args) == 1 && os.Getenv(pulumi.EnvMonitor) != "" {
		pulumi.Run(deploy)
		return
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run runs the subcommand that is the first argument.
func run(args []string, out, problems io.Writer) int {
	if len(args) == 0 {
		usage(problems)
		return usageError
	}
	for _, one := range subcommands {
		if one.name == args[0] {
			return one.run(program+" "+one.name, args[1:])
		}
	}
	switch args[0] {
	case "help", "-h", "--help":
		usage(out)
		return 0
	}
	_, _ = fmt.Fprintf(problems, "%s: %q is not a subcommand\n\n", program, args[0])
	usage(problems)
	return usageError
}

func usage(w io.Writer) {
	_, _ = fmt.Fprintf(w, "usage: %s SUBCOMMAND [arguments]\n\n", program)
	for _, one := range subcommands {
		_, _ = fmt.Fprintf(w, "  %-14s %s\n", one.name, one.does)
	}
	_, _ = fmt.Fprint(w, usageEnd)
}
