package config

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
)

// shares6 is what is wrong with an IPv6 pod network for so many machines.
func shares6(pods string, machines int) error {
	stack := &Stack{NodePools: []NodePool{{Role: RoleWorker, Nodes: make([]Node, machines)}}}
	stack.Network.IPv6 = &IPv6{PodCIDR: netip.MustParsePrefix(pods)}
	v := validator{Stack: stack}
	v.podShares6()
	return v.err()
}

func TestPodShares6_CountWhatKubernetesGivesANode(t *testing.T) {
	for pods, limit := range map[string]struct{ nodes, share int }{
		"fd25::/48": {65536, 64}, "fd25::/55": {512, 64}, "fd25::/56": {256, 64}, "fd25::/57": {65536, 73}, "fd25::/112": {256, 120}, "fd25::/32": {65536, 48},
	} {
		assert.NoError(t, shares6(pods, limit.nodes), pods)
		assert.EqualError(t, shares6(pods, limit.nodes+1), fmt.Sprintf(
			"network.ipv6.podCIDR: %s is divided into %d of the /%d that each node gets one of, and there are %d nodes; pick a larger one",
			pods, limit.nodes, limit.share, limit.nodes+1))
	}
}
