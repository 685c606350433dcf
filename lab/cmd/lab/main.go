// Command lab rehearses Slipway on one Linux computer: it runs the checkout's unmodified stack files against simulated
// Proxmox VE machines, up to real Kubernetes clusters with real Flux. See docs/lab.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"
)

// The thread that starts a lab must live as long as this process: the kernel ends the lab with this thread.
func init() { runtime.LockOSThread() }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	// An ExitError that is not wrapped comes from the command of shell or exec, which has printed its error.
	if exit, isExit := err.(*exec.ExitError); isExit { //nolint:errorlint // see above
		os.Exit(max(1, exit.ExitCode()))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use: "lab", Short: "Rehearse Slipway's whole chain on one Linux computer",
		SilenceUsage: true, SilenceErrors: true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&o.name, "name", "", "name of the lab; labs of different names run side by side (default: one for each checkout)")
	flags.StringVar(&o.project, "project", "", "folder of the project (default: the nearest one with a Pulumi.yaml)")
	flags.Float64Var(&o.latency, "latency", 1, "factor on every simulated duration")
	flags.StringVar(&o.talos, "talos", "", "run the VMs of a new lab in QEMU, and boot this Talos: names of built tools, or their folders, with "+
		"commas between them; the others are those to which a machine is upgraded (default: simulated nodes)")
	root.AddCommand(o.run(), o.start(), o.shell(), o.exec(), o.status(), o.fault(), o.clean(), o.tools(),
		initCommand(), daemonCommand(), probeCommand(), checkOutputCommand())
	return root
}
