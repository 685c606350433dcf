package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
)

func TestReadiness_TimeoutGrowsWithTheNodesUnlessItIsGiven(t *testing.T) {
	timeout := func(nodes int, given *cluster.Duration) time.Duration {
		c := cluster.New("infra")
		c.NodePools = []cluster.NodePool{{Role: cluster.ControlPlane, Nodes: make([]cluster.Node, nodes)}}
		c.Readiness.Timeout = given
		c.Complete(&cluster.Findings{})
		return c.Readiness.Timeout.Duration
	}
	assert.Equal(t, 10*time.Minute+30*time.Second, timeout(5, nil))
	assert.Equal(t, 20*time.Minute, timeout(100, nil))
	assert.Equal(t, time.Minute, timeout(100, &cluster.Duration{Duration: time.Minute}))
}
