package main

import (
	"context"
	"fmt"

	"github.com/slipway-platform/slipway/internal/upgrade"
	"github.com/slipway-platform/slipway/internal/upgrade/perform"
)

func runUpgrade(ctx context.Context, c call) error {
	spec := new(upgrade.Spec)
	if err := c.readOnlyStdin(spec); err != nil {
		return err
	}
	report, err := perform.Run(ctx, *spec, c.stderr)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.stderr, report.Sentence())
	return report.Write(c.stdout)
}
