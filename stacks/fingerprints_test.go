package stacks

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
)

func TestFingerprints_OfMachinesChangeWithThemAndNotWithTheHostsOfNewOnes(t *testing.T) {
	of := func(hosts []string, host string) string {
		p, err := newFingerprints(&cluster.Cluster{NodePools: []cluster.NodePool{{
			Name: "workers", Hosts: hosts, Nodes: []cluster.Node{{Name: "infra-worker-1", Host: host}},
		}}})
		require.NoError(t, err)
		return p.machines
	}
	before := of([]string{"pve1"}, "pve1")
	assert.Equal(t, before, of([]string{"pve1", "pve2"}, "pve1"))
	assert.NotEqual(t, before, of([]string{"pve1", "pve2"}, "pve2"))
}
