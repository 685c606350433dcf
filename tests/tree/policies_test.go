package tree

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// On the node that holds the virtual IP, it is the entity host; for all other nodes, it is an address outside of the cluster.
func TestPolicies_WhatIsDeniedAtNodesIsDeniedAtTheVirtualIP(t *testing.T) {
	for _, stack := range stacks(t) {
		layers, err := Build(checkout(t), "kubernetes/infrastructure/networking/cilium/policies", stack.Settings())
		require.NoError(t, err)
		denied := named(t, layers, "CiliumClusterwideNetworkPolicy", "workloads-not-to-nodes").List("spec", "egressDeny")
		require.Len(t, denied, 2)
		assert.Equal(t, []any{"host", "remote-node"}, denied[0]["toEntities"])
		assert.Equal(t, []any{stack.Network.VIP.String() + "/32"}, denied[1]["toCIDR"])
		assert.NotEmpty(t, denied[0]["toPorts"])
		assert.Equal(t, denied[0]["toPorts"], denied[1]["toPorts"], "and not the Kubernetes API")
	}
}
