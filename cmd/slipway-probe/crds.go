package main

import (
	"context"
	"fmt"

	"github.com/slipway-platform/slipway/internal/crds"
)

func runCRDs(ctx context.Context, c call) error {
	spec := new(crds.Spec)
	if err := c.readOnlyStdin(spec); err != nil {
		return err
	}
	report, err := crds.Run(ctx, *spec, c.stderr)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.stderr, report.Sentence())
	return report.Write(c.stdout)
}
