package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters"
)

func TestAdvice_WarnsOfAStorageOfEachNodeThatIsCalledShared(t *testing.T) {
	const says = "proxmox.datastores.isoShared: true, and the storage local is a folder of each Proxmox node"
	infra := clusters.Infra(t, func(c *cluster.Cluster) { c.Proxmox.Datastores.ISOShared = true })
	assert.ErrorContains(t, infra.Advice(time.Now()), says)
	infra.Proxmox.Datastores.ISO = "nfs"
	assert.NotContains(t, infra.Advice(time.Now()).Error(), says)
}

func TestAdvice_WarnsOfAnExpiredAuthority(t *testing.T) {
	const says = "meshCA: has a certificate that was valid until "
	meshed := clusters.Infra(t, clusters.Meshed)
	assert.NotContains(t, meshed.Advice(time.Now()).Error(), says)
	assert.ErrorContains(t, meshed.Advice(time.Now().Add(2*time.Hour)), says)
}
