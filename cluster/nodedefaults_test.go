package cluster

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
)

// These values must never change: they are those of machines that run.
func TestNode_DefaultsAreStableForEver(t *testing.T) {
	for machine, want := range map[string]MAC{
		"home-all-1": "BC:24:11:F1:89:5A", "home-all-2": "BC:24:11:06:25:BE", "home-all-3": "BC:24:11:60:4F:E5",
	} {
		assert.Equal(t, want, macOf("home", machine))
	}
	assert.NotEqual(t, macOf("ab", "c"), macOf("a", "bc"))
	for address, want := range map[string]int{
		"10.25.11.21": 111021, "192.168.1.231": 101231, "10.0.0.1": 100001, "10.0.255.254": 355254,
	} {
		assert.Equal(t, want, vmIDOf(netip.MustParseAddr(address)))
	}
}

func TestNode_WhatIsWrittenIsNoDefault(t *testing.T) {
	node := Node{Name: "spare", VMID: 7, MAC: "02:00:00:00:00:01", Address: netip.MustParseAddr("10.25.11.21")}
	written := node
	node.derive("home", "all", 3)
	assert.Equal(t, written, node)
}

func TestNodePool_ACountIsAListOnceAndForAll(t *testing.T) {
	count := 2
	c := New("home")
	c.Identity.Name = "home"
	c.NodePools = []NodePool{{Name: "all", FirstAddress: netip.MustParseAddr("10.25.11.255"), Count: &count}}
	for range 2 { // Complete may be called again after a change
		var findings Findings
		c.deriveNodes(&findings)
		assert.NoError(t, findings.Err())
		assert.Len(t, c.NodePools[0].Nodes, 2)
		assert.Equal(t, "10.25.12.0", c.NodePools[0].Nodes[1].Address.String())
		assert.Equal(t, "home-all-2", c.NodePools[0].Nodes[1].Name)
	}
}
