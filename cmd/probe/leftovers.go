package probe

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/components/machines/proxmox/reclaim"
)

func defineLeftovers(c *cobra.Command) {
	c.RunE = func(c *cobra.Command, _ []string) error {
		left := new(reclaim.Leftovers)
		if err := readStdin(c, left); err != nil {
			return err
		}
		return reclaim.Remove(c.Context(), left, func(line string) { fmt.Fprintln(c.ErrOrStderr(), line) })
	}
}
