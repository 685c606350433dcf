package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters"
)

func TestLocalStorage_NeedsAUserVolumeAndTheTree(t *testing.T) {
	for says, change := range map[string]func(*cluster.Cluster){
		"": func(*cluster.Cluster) {},
		"storage.local: data is the user volume of no machine; name another disk, which you add to dataDisks with use: volume": func(
			c *cluster.Cluster) {
			c.NodePools[1].DataDisks[len(c.NodePools[1].DataDisks)-1].Use = cluster.DiskRaw
		},
		"storage.local: data is the user volume of no machine; add {name: data, size: 50GiB, use: volume} to the dataDisks of a pool": func(
			c *cluster.Cluster) {
			c.NodePools[1].DataDisks = c.NodePools[1].DataDisks[:1]
		},
		"storage.local: scratch is the user volume of no machine; write data": func(c *cluster.Cluster) { c.Storage.Local = "scratch" },
		"storage.local: comes with the tree, which nothing applies; remove it, or set gitops.enabled: true": func(c *cluster.Cluster) {
			c.GitOps.Enabled = false
		},
	} {
		c := clusters.Read(t, clusters.Sample(t, "infra"))
		volume := cluster.DataDisk{Name: "data", Size: cluster.GiB, Use: cluster.DiskVolume}
		c.Storage.Local, c.NodePools[1].DataDisks = "data", append(c.NodePools[1].DataDisks, volume)
		change(c)
		var findings cluster.Findings
		c.Complete(&findings)
		if says == "" {
			assert.NotContains(t, findings.All().Error(), "storage.local")
			continue
		}
		assert.ErrorContains(t, findings.Err(), says)
	}
}
