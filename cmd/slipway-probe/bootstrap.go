package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/slipway-platform/slipway/internal/bootstrap"
)

func runBootstrap(ctx context.Context, c call) error {
	spec := new(bootstrap.Spec)
	if err := c.readOnlyStdin(spec); err != nil {
		return err
	}
	result, err := bootstrap.Run(ctx, *spec, c.stderr)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.stderr, result.String())
	return json.NewEncoder(c.stdout).Encode(result)
}
