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
		"storage.local: data is the user volume of no machine; give a pool of nodePools the dataDisks {name: data, use: volume}": func(
			c *cluster.Cluster) {
			c.NodePools[1].DataDisks[len(c.NodePools[1].DataDisks)-1].Use = cluster.DiskRaw
		},
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
