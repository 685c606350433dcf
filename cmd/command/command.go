// Package command runs the commands of the binaries slipway, slipway-probe and config-check, and gives each result its exit code.
package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	Done   = 0
	Failed = 1 // the output says what
	Misuse = 2 // arguments or input are wrong
)

// Exit is the exit code of a command that has printed everything itself.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// misuse is an error about arguments or input.
type misuse struct{ error }

func (m misuse) Unwrap() error { return m.error }

// Wrong makes an error one about arguments or input, whose exit code is Misuse.
func Wrong(err error) error { return misuse{err} }

// Group makes a command one that needs a subcommand.
func Group(c *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	c.Use, c.DisableFlagsInUseLine = c.Use+" SUBCOMMAND", true
	c.Run = func(*cobra.Command, []string) {} // without it, cobra prints the help whatever the arguments are
	c.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New("a subcommand is missing")
		}
		return fmt.Errorf("%q is not a subcommand", args[0])
	}
	c.AddCommand(subcommands...)
	return c
}

// Run runs a command, prints its error, after the usage if the arguments are wrong, and returns the exit code.
func Run(ctx context.Context, c *cobra.Command, args []string) int {
	c.SetArgs(append([]string{}, args...)) // nil would mean those of the process
	c.SilenceErrors, c.SilenceUsage = true, true
	accepted := false // the arguments
	c.PersistentPreRun = func(*cobra.Command, []string) { accepted = true }
	ran, err := c.ExecuteContextC(ctx)
	var exit Exit
	switch {
	case err == nil:
		return Done
	case errors.As(err, &exit):
		return int(exit)
	}
	if !accepted {
		ran.PrintErrln(ran.UsageString())
	}
	ran.PrintErrf("%s: %v\n", ran.CommandPath(), err)
	if !accepted || errors.As(err, new(misuse)) {
		return Misuse
	}
	return Failed
}
