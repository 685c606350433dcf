package probe

import (
	"context"
	"fmt"
	"io"

	"github.com/slipway-platform/slipway/internal/probe"
)

// change returns a subcommand without flags, which changes a cluster by a spec.
func change[S any, P interface {
	*S
	probe.Spec
}, R probe.Report](run func(ctx context.Context, spec S, progress io.Writer) (R, error)) func(context.Context, call) error {
	return func(ctx context.Context, c call) error {
		spec := new(S)
		if err := c.readOnlyStdin(P(spec)); err != nil {
			return err
		}
		report, err := run(ctx, *spec, c.stderr)
		return c.finish(report, err)
	}
}

// finish writes the report of a run to standard output, and its sentence to standard error, unless the run has failed.
func (c call) finish(report probe.Report, err error) error {
	if err != nil {
		return err
	}
	fmt.Fprintln(c.stderr, report.Sentence())
	return probe.Write(c.stdout, report)
}
