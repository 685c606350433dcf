package cluster

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
)

// shares6 returns the problem of an IPv6 pod network with a number of machines.
func shares6(pods string, machines int) error {
	six := IPv6{PodCIDR: netip.MustParsePrefix(pods)}
	var findings Findings
	check := clusterCheck{Findings: &findings, Cluster: &Cluster{NodePools: []NodePool{{Role: Worker, Nodes: make([]Node, machines)}}}}
	check.podShares(ipv6Path+".podCIDR", six.PodCIDR, six.NodeBits())
	return findings.Err()
}

func TestIPv6_UsesTheShareThatKubernetesGivesANode(t *testing.T) {
	for pods, limit := range map[string]struct{ nodes, share int }{
		"fd25::/48": {65536, 64}, "fd25::/55": {512, 64}, "fd25::/56": {256, 64},
		"fd25::/57": {65536, 73}, "fd25::/112": {256, 120}, "fd25::/32": {65536, 48},
	} {
		assert.NoError(t, shares6(pods, limit.nodes), pods)
		assert.EqualError(t, shares6(pods, limit.nodes+1), fmt.Sprintf(
			"network.ipv6.podCIDR: %s has room for %d nodes with a /%d each, and there are %d nodes; pick a larger one",
			pods, limit.nodes, limit.share, limit.nodes+1))
	}
}
