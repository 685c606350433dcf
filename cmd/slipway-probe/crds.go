package main

import (
	"context"
	"fmt"
	"io"

	"github.com/slipway-platform/slipway/internal/crds"
	"github.com/slipway-platform/slipway/internal/crds/apply"
)

// applyCRDs gives a cluster its CustomResourceDefinitions.
func applyCRDs(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	if len(args) > 0 {
		return exitUsage, fmt.Errorf("%q: takes no arguments; the spec comes from standard input", args[0])
	}
	spec, err := crds.Read(stdin)
	if err != nil {
		return exitUsage, err
	}
	report, err := apply.Run(ctx, spec, stderr)
	if err != nil {
		return exitUnhealthy, err
	}
	if err := report.Write(stdout); err != nil {
		return exitUnhealthy, err
	}
	return exitOpen, nil
}
