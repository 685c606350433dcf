package cluster_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters"
)

// apps returns the cluster of Pulumi.apps.yaml as the peer of infra, after a change.
func apps(t *testing.T, change func(*cluster.Cluster)) *cluster.Cluster {
	t.Helper()
	peer := clusters.Load(t, clusters.Sample(t, "apps"))
	peer.Mesh.Peers = []string{"infra"}
	change(peer)
	return peer
}

func TestMeet_RefusesPeersThatCannotFormAMesh(t *testing.T) {
	for want, change := range map[string]func(*cluster.Cluster){
		"": func(c *cluster.Cluster) { c.Cilium.Values = cluster.ChartValues(`{"tunnelPort":8472}`) }, // the port of vxlan
		"mesh.peers[0]: apps does not list this stack as its peer; add infra to mesh.peers of apps": func(c *cluster.Cluster) {
			c.Mesh.Peers = nil
		},
		"cluster.id: 1 is cluster.id of apps; pick another": func(c *cluster.Cluster) {
			c.Identity.ID = 1
		},
		"cluster.name: infra is cluster.name of apps; pick another": func(c *cluster.Cluster) {
			c.Identity.Name = "infra"
		},
		"cilium.encryption: none is not that of its peer apps, which is wireguard; write the same in both": func(c *cluster.Cluster) {
			c.Cilium.Encryption = cluster.EncryptionWireGuard
		},
		"network.ipv6: only one of infra and apps has it; declare it in both, or in none": func(c *cluster.Cluster) {
			c.Network.IPv6 = &cluster.IPv6{}
		},
		"cilium.values.tunnelProtocol: vxlan is not that of its peer apps, which is geneve; write the same in both": func(c *cluster.Cluster) {
			c.Cilium.Values = cluster.ChartValues(`{"tunnelProtocol":"geneve"}`)
		},
		"cilium.values.tunnelPort: 8472 is not that of its peer apps, which is 8473; write the same in both": func(c *cluster.Cluster) {
			c.Cilium.Values = cluster.ChartValues(`{"tunnelPort":8473}`)
		},
		"network.nameservers[0]: 10.246.0.53 is in network.podCIDR 10.246.0.0/16 of apps; write another address": func(*cluster.Cluster) {},
		"cilium.routing: tunnel is not that of its peer apps, which is native; write the same in both": func(c *cluster.Cluster) {
			c.Cilium.Routing = cluster.RoutingNative
		},
		"network.podCIDR: 10.244.0.0/16 overlaps network.podCIDR 10.244.0.0/16 of apps; pick a disjoint range": func(c *cluster.Cluster) {
			c.Network.PodCIDR = clusters.Infra(t).Network.PodCIDR
		},
	} {
		infra := clusters.Infra(t)
		infra.Mesh.Peers = []string{"apps"}
		infra.GitOps.URL = "https://10.25.12.21:30443/platform.git" // on a machine of apps, by a NodePort
		if strings.HasPrefix(want, "network.nameservers") {
			infra.Network.Nameservers = []netip.Addr{netip.MustParseAddr("10.246.0.53")}
		}
		var findings cluster.Findings
		infra.Meet([]*cluster.Cluster{apps(t, change)}, &findings)
		if want == "" {
			assert.NoError(t, findings.Err())
			continue
		}
		assert.EqualError(t, findings.Err(), want)
	}
}

func TestMeet_RemembersWhatTheChartAndTheGateNeed(t *testing.T) {
	infra, peer := clusters.Infra(t), apps(t, func(*cluster.Cluster) {})
	var findings cluster.Findings
	infra.Mesh.Peers = []string{"absent", "apps"}
	infra.Meet([]*cluster.Cluster{nil, peer}, &findings)
	require.NoError(t, findings.Err())
	assert.Equal(t, []cluster.Peer{{
		Stack: "apps", Name: "apps", ID: 2, Nodes: len(peer.Machines()), Address: peer.Network.LoadBalancers.Mesh,
	}}, infra.Mesh.Clusters)
}
