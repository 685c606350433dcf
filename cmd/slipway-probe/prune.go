package main

import (
	"context"
	"fmt"

	"github.com/slipway-platform/slipway/internal/flux/prune"
)

func runPrune(ctx context.Context, c call) error {
	spec := new(prune.Spec)
	if err := c.readOnlyStdin(spec); err != nil {
		return err
	}
	report, err := prune.Run(ctx, *spec, c.stderr)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.stderr, report.Sentence())
	return report.Write(c.stdout)
}
