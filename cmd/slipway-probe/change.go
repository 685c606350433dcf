package main

import (
	"context"
	"fmt"
	"io"

	"github.com/slipway-platform/slipway/internal/probe"
)

// changed is the report of a run that has changed a cluster.
type changed interface {
	Sentence() string
	Write(to io.Writer) error
}

// change returns a subcommand without flags, which changes a cluster by a spec.
func change[S any, P interface {
	*S
	probe.Spec
}, R changed](run func(ctx context.Context, spec S, progress io.Writer) (R, error)) func(context.Context, call) error {
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
func (c call) finish(report changed, err error) error {
	if err != nil {
		return err
	}
	fmt.Fprintln(c.stderr, report.Sentence())
	return report.Write(c.stdout)
}
