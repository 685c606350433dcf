package main

import (
	"context"

	"github.com/slipway-platform/slipway/internal/crds"
	"github.com/slipway-platform/slipway/internal/crds/apply"
)

func runCRDs(ctx context.Context, c call) error {
	spec := new(crds.Spec)
	if err := c.readOnlyStdin(spec); err != nil {
		return err
	}
	report, err := apply.Run(ctx, *spec, c.stderr)
	if err != nil {
		return err
	}
	return report.Write(c.stdout)
}
