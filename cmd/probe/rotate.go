package probe

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/internal/nodes/rotate"
)

func defineRotate(c *cobra.Command) {
	done := c.Flags().Bool("done", false, "a run has succeeded for this generation: nothing is to do, whatever else has changed")
	c.RunE = func(c *cobra.Command, _ []string) error {
		spec := new(rotate.Spec)
		if err := readStdin(c, spec); err != nil {
			return err
		}
		if *done {
			fmt.Fprintln(c.ErrOrStderr(), "the generation of the CA has not changed")
			return nil
		}
		report, err := rotate.Run(c.Context(), *spec, c.ErrOrStderr())
		return finish(c, report, err)
	}
}
