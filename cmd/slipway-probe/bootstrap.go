package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/slipway-platform/slipway/internal/bootstrap"
)

func bootstrapEtcd(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	if len(args) > 0 {
		return exitUsage, fmt.Errorf("%q: takes no arguments; the spec comes from standard input", args[0])
	}
	spec, err := bootstrap.ReadSpec(stdin)
	if err != nil {
		return exitUsage, err
	}
	result, err := bootstrap.Run(ctx, spec, stderr)
	if err != nil {
		return exitUnhealthy, err
	}
	if _, err := fmt.Fprintln(stdout, result.String()); err != nil {
		return exitUnhealthy, err
	}
	return exitOpen, json.NewEncoder(stdout).Encode(result)
}
