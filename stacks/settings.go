package stacks

import (
	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/gitops"
)

// settings returns the values that the GitOps tree can substitute.
func settings(c *cluster.Cluster) gitops.Settings { return c.Settings() }
