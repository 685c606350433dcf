package probe

import (
	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/internal/nodes/bootstrap"
)

func defineBootstrap(c *cobra.Command) {
	existed := c.Flags().Bool("existed", false, "the cluster had etcd before: do not begin it anew, empty, unless the spec says so")
	c.RunE = func(c *cobra.Command, _ []string) error {
		spec := new(bootstrap.Spec)
		if err := readStdin(c, spec); err != nil {
			return err
		}
		spec.Existed = *existed
		report, err := bootstrap.Run(c.Context(), *spec, c.ErrOrStderr())
		return finish(c, report, err)
	}
}
