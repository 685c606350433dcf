package cluster_test

import (
	"net/netip"
	"strings"
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

func TestAdvice_NamesExpiredAuthoritiesInTheSameOrderEachTime(t *testing.T) {
	meshed := clusters.Infra(t, clusters.Meshed)
	meshed.GitOps.CA = cluster.Text(meshed.MeshAuthority().Certificate)
	for range 20 {
		assert.Regexp(t, `(?s)gitops\.ca: has a certificate.*meshCA: has a certificate`, meshed.Advice(time.Now().Add(2*time.Hour)).Error())
	}
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

func TestAdvice_WarnsOfAnEngineThatOwnsItselfAndIsSwitchedOff(t *testing.T) {
	const says = "gitops.argocd.owner: lets the engine own itself, so that gitops.enabled: false does not uninstall it"
	infra := clusters.Infra(t)
	infra.GitOps.ArgoCD.Owner, infra.GitOps.Enabled = cluster.OwnerArgoCD, false
	assert.ErrorContains(t, infra.Advice(time.Now()), says)
	infra.GitOps.Enabled = true
	assert.NotContains(t, infra.Advice(time.Now()).Error(), says)
	infra.GitOps.Enabled, infra.GitOps.ArgoCD.Owner = false, cluster.OwnerPulumi
	assert.NotContains(t, infra.Advice(time.Now()).Error(), says)
}

func TestAdvice_WarnsOfAnEndpointWithoutAPort(t *testing.T) {
	for endpoint, warns := range map[string]bool{
		"https://pve.home.arpa": true, "https://pve.home.arpa/": true, "https://pve.home.arpa:8006": false, "https://pve.home.arpa:443/": false,
	} {
		infra := clusters.Infra(t, func(c *cluster.Cluster) { c.Proxmox.Endpoint = endpoint })
		if says := endpoint + " has no port, and Proxmox VE listens on 8006; add :8006, or :443"; warns {
			assert.ErrorContains(t, infra.Advice(time.Now()), says)
		} else {
			assert.NotContains(t, infra.Advice(time.Now()).Error(), says)
		}
	}
}

func TestAdvice_WarnsOfPlacesWhereMachinesCannotWork(t *testing.T) {
	for says, change := range map[string]func(*cluster.Cluster){
		"proxmox.datastores.iso: local-lvm is a pool of LVM on an installed Proxmox VE, which takes no images": func(c *cluster.Cluster) {
			c.Proxmox.Datastores.ISO = "local-lvm"
		},
		"nodePools[1].vlan: 12 is another network than 0 of nodePools[0] on the same bridge": func(c *cluster.Cluster) {
			c.NodePools[1].VLAN = new(int)
			*c.NodePools[1].VLAN = 12
		},
		"network.loadBalancers.bgp.peers[1].address: 10.25.12.1 is outside of network.nodeCIDR": func(c *cluster.Cluster) {
			c.Network.LoadBalancers.BGP = &cluster.BGP{ASN: 64512, Peers: []cluster.BGPPeer{
				{Address: netip.MustParseAddr("10.25.11.1"), ASN: 64513}, {Address: netip.MustParseAddr("10.25.12.1"), ASN: 64513},
				{Address: netip.MustParseAddr("10.25.12.2"), ASN: 64512},
			}}
		},
		"lifecycle.bootedSince: 2999-01-01T00:00:00Z is still to come, and `up` refuses it until then": func(c *cluster.Cluster) {
			c.Lifecycle.BootedSince = "2999-01-01T00:00:00Z"
		},
		"storage.local: data is a user volume only of machines that take no ordinary pods": func(c *cluster.Cluster) {
			c.Storage.Local = "data"
			c.NodePools[0].DataDisks = append(c.NodePools[0].DataDisks, cluster.DataDisk{Name: "data", Use: cluster.DiskVolume})
		},
	} {
		infra := clusters.Infra(t)
		before := infra.Advice(time.Now())
		assert.NotContains(t, before.Error(), says)
		change(infra)
		advice := infra.Advice(time.Now())
		assert.ErrorContains(t, advice, says)
		assert.Len(t, advice, len(before)+1)
	}
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

func TestAdvice_WarnsOfMirrorsThatSpegelTakesAwayFromPods(t *testing.T) {
	const says = `talos.registryMirrors["registry.home.arpa:5000"]: has a port or an IPv6 address, so that its mirrors serve ` +
		"Talos's own images, and not those of pods, while Spegel is on; set spegel.enabled: false, or accept this"
	mirrors := []string{"https://mirror.home.arpa"}
	infra := clusters.Infra(t, func(c *cluster.Cluster) {
		c.Talos.RegistryMirrors = map[string][]string{"*": mirrors, "docker.io": mirrors, "registry.home.arpa:5000": mirrors}
	})
	advice := infra.Advice(time.Now()).Error()
	assert.Contains(t, advice, says)
	assert.Equal(t, 1, strings.Count(advice, "registryMirrors"))
	infra.Spegel.Enabled = false
	assert.NotContains(t, infra.Advice(time.Now()).Error(), "registryMirrors")
}
