package main

import (
	"context"
	"fmt"
	"os"

	"github.com/slipway-platform/slipway/internal/nodes/retire"
)

func runRetire(ctx context.Context, c call) error {
	spec := new(retire.Spec)
	if err := c.readOnlyStdin(spec); err != nil {
		return err
	}
	former, err := retire.ReadRecord(os.Getenv(retire.PreviousOutput))
	if err != nil {
		return usageError{fmt.Errorf("%s: %w", retire.PreviousOutput, err)}
	}
	report, err := retire.Run(ctx, *spec, former, c.stderr)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.stderr, report.Sentence())
	return report.Write(c.stdout)
}
