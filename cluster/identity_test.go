package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
)

func TestIdentity_AcceptsEveryClusterIDUpToTheLargest(t *testing.T) {
	for id, problems := range map[int]int{0: 1, 1: 0, cluster.MaxClusterID: 0, cluster.MaxClusterID + 1: 1} {
		assert.Len(t, problemsOf(t, func(c *cluster.Cluster) { c.Identity.ID = id }), problems, id)
	}
}
