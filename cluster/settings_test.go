package cluster_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters"
)

func TestSettings_HoldThePoolAndHowItIsAnnounced(t *testing.T) {
	values := clusters.Infra(t).Settings()
	assert.Equal(t, "l2", values["LB_ANNOUNCE"])
	assert.Equal(t, `[{"start":"10.25.11.100","stop":"10.25.11.150"}]`, values["LB_POOL_BLOCKS"])
	assert.NotContains(t, values, "BGP_ASN")

	c := clusters.Infra(t)
	c.Network.IPv6 = &cluster.IPv6{LoadBalancers: &cluster.IPv6LoadBalancers{
		Start: netip.MustParseAddr("fd25:11::100"), Stop: netip.MustParseAddr("fd25:11::150"),
	}}
	c.Network.LoadBalancers.Announce = cluster.AnnounceBGP
	c.Network.LoadBalancers.BGP = &cluster.BGP{
		ASN: 64512, Peers: []cluster.BGPPeer{{Address: netip.MustParseAddr("10.25.11.1"), ASN: 64513}},
	}
	values = c.Settings()
	assert.Equal(t, `[{"start":"10.25.11.100","stop":"10.25.11.150"},{"start":"fd25:11::100","stop":"fd25:11::150"}]`,
		values["LB_POOL_BLOCKS"])
	assert.Equal(t, "64512", values["BGP_ASN"])
	assert.Equal(t, `[{"name":"10.25.11.1","peerASN":64513,"peerAddress":"10.25.11.1","peerConfigRef":{"name":"infra"}}]`, values["BGP_PEERS"])
}
