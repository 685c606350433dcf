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

func TestAdvice_WarnsOfDisksForCephInMachinesThatTakeNoPods(t *testing.T) {
	const says = "storage.role: provider, and no OSD tolerates the taints of infra-worker-1, infra-worker-2: Ceph does not use their disks"
	infra := clusters.Infra(t)
	assert.NotContains(t, infra.Advice(time.Now()).Error(), "OSD")
	infra.NodePools[1].Taints = map[string]string{"storage": "only:PreferNoSchedule"}
	assert.NotContains(t, infra.Advice(time.Now()).Error(), "OSD")
	infra.NodePools[1].Taints = map[string]string{"storage": "only:NoSchedule"}
	assert.ErrorContains(t, infra.Advice(time.Now()), says)
}

func TestAdvice_WarnsOfTheRepositoryOfTheExamples(t *testing.T) {
	const says = "gitops.url: https://github.com/OWNER/REPOSITORY.git is the repository of the examples; write the URL of yours"
	infra := clusters.Infra(t, func(c *cluster.Cluster) { c.GitOps.URL = cluster.ExampleRepository })
	assert.ErrorContains(t, infra.Advice(time.Now()), says)
	infra.GitOps.URL = "https://github.com/owner/repository.git"
	assert.NotContains(t, infra.Advice(time.Now()).Error(), "gitops.url")
}

func TestAdvice_IsSilencedByItsPathAndAPartOfItsText(t *testing.T) {
	infra := clusters.Infra(t, func(c *cluster.Cluster) {
		c.Proxmox.Datastores.ISOShared = true
		c.Accepted = []cluster.Acceptance{
			{Path: "proxmox.datastores.isoShared", Of: "true", Reason: "local is a mount of the same share"}, {Path: "proxmox", Reason: "above"},
			{Path: "proxmox.datastores.isoShared", Of: "other.yaml", Reason: "another one"},
		}
	})
	advice := infra.Advice(time.Now())
	assert.Contains(t, advice.Error(), "proxmox.datastores.isoShared: true")
	assert.NotContains(t, infra.Unaccepted(advice).Error(), "proxmox.datastores.isoShared: true")
	assert.EqualError(t, infra.UnusedAcceptances(advice), "accepted[1].path: proxmox has no warning; remove the entry\n"+
		"accepted[2].of: other.yaml is in no warning of proxmox.datastores.isoShared; correct it, or remove the entry")
}
