package probe

import (
	"context"
	"fmt"

	"github.com/slipway-platform/slipway/components/machines/proxmox/reclaim"
)

func runLeftovers(ctx context.Context, c call) error {
	left := new(reclaim.Leftovers)
	if err := c.readOnlyStdin(left); err != nil {
		return err
	}
	return reclaim.Remove(ctx, left, func(line string) { fmt.Fprintln(c.stderr, line) })
}
