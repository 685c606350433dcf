package probe

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/internal/probe"
)

// change defines a subcommand without flags, which changes a cluster by a spec.
func change[S any, P interface {
	*S
	probe.Spec
}, R probe.Report](run func(ctx context.Context, spec S, progress io.Writer) (R, error)) func(*cobra.Command) {
	return func(c *cobra.Command) {
		c.RunE = func(c *cobra.Command, _ []string) error {
			spec := new(S)
			if err := readStdin(c, P(spec)); err != nil {
				return err
			}
			report, err := run(c.Context(), *spec, c.ErrOrStderr())
			return finish(c, report, err)
		}
	}
}

// finish writes the report of a run to standard output, and its sentence to standard error, unless the run has failed.
func finish(c *cobra.Command, report probe.Report, err error) error {
	if err != nil {
		return err
	}
	fmt.Fprintln(c.ErrOrStderr(), report.Sentence())
	return probe.Write(c.OutOrStdout(), report)
}
