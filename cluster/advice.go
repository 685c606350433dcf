package cluster

import (
	"slices"
	"time"

	"github.com/slipway-platform/slipway/cluster/syntax"
)

// Advice returns accepted values that should be changed, such as a version without support on a day. config-check and `up` show it as
// warnings.
func (c *Cluster) Advice(day time.Time) Problems {
	whole := clusterCheck{Findings: &Findings{}, Cluster: c}
	whole.advise(day)
	return slices.Concat(c.versionAdvice(day), whole.All())
}

func (c clusterCheck) advise(day time.Time) {
	if c.Providers.SealedSecrets != nil {
		c.Providers.SealedSecrets.advise(c.Findings)
	}
	if c.Providers.OnePassword != nil {
		c.Providers.OnePassword.Operator.advise(c.Findings)
	}
	if c.GitOps.URL == ExampleRepository {
		c.Found("gitops.url", "write the URL of yours", "%s is the repository of the examples", c.GitOps.URL)
	}
	// https://pve.proxmox.com/wiki/Proxmox_VE_API: the API is at port 8006.
	if endpoint := urlOf(c.Proxmox.Endpoint); endpoint.Host != "" && endpoint.Port() == "" {
		c.Found("proxmox.endpoint", "add :8006, or :443 if a proxy in front of it listens there",
			"%s has no port, and Proxmox VE listens on 8006", c.Proxmox.Endpoint)
	}
	c.adviseMachines()
	if since, err := time.Parse(time.RFC3339, c.Lifecycle.BootedSince); err == nil && since.After(day) {
		c.Found("lifecycle.bootedSince", "write a time that has passed", "%s is still to come, and `up` refuses it until then",
			c.Lifecycle.BootedSince)
	}
	c.adviseMirrors()
	c.adviseEngine()
	c.adviseStorageVault()
	c.adviseRadosNamespace()
	c.adviseStorageMachines()
	c.adviseSnapshotBucket()
	c.adviseMaintenance()
	if c.Proxmox.Datastores.ISOShared && c.Proxmox.Datastores.ISO == "local" && len(c.Proxmox.Nodes) > 1 {
		c.Found("proxmox.datastores.isoShared", "remove it, or name the shared storage in proxmox.datastores.iso",
			"true, and the storage local is a folder of each Proxmox node, unless somebody has changed that")
	}
	for _, one := range []struct{ path, text string }{
		{"gitops.ca", string(c.GitOps.CA)}, {MeshAuthorityKey, c.MeshAuthority().Certificate},
	} {
		if ended := syntax.Expired(one.text, day); !ended.IsZero() {
			c.Found(one.path, "replace it", "has a certificate that was valid until %s", ended.Format(time.DateOnly))
		}
	}
}

// adviseMachines warns of places for machines that cannot work, unless somebody has prepared them for it.
func (c clusterCheck) adviseMachines() {
	if c.Proxmox.Datastores.ISO == "local-lvm" {
		c.Found("proxmox.datastores.iso", "name a storage with the content ISO image, such as local",
			"local-lvm is a pool of LVM on an installed Proxmox VE, which takes no images")
	}
	for i, pool := range c.NodePools {
		first := c.NodePools[0]
		if pool.Bridge == first.Bridge && pool.VLAN != nil && first.VLAN != nil && *pool.VLAN != *first.VLAN {
			c.Found(ItemPath("nodePools", i)+".vlan", "give all pools on a bridge the same VLAN",
				"%d is another network than %d of nodePools[0] on the same bridge, and all machines have addresses of network.nodeCIDR",
				*pool.VLAN, *first.VLAN)
		}
	}
	if bgp := c.Network.LoadBalancers.BGP; bgp != nil {
		for i, peer := range bgp.Peers {
			if peer.ASN != bgp.ASN && peer.Address.IsValid() && c.Network.NodeCIDR.IsValid() && !c.Network.NodeCIDR.Contains(peer.Address) {
				c.Found(ItemPath("network.loadBalancers.bgp.peers", i)+".address",
					"write a router in network.nodeCIDR, or give the tree's CiliumBGPPeerConfig ebgpMultihop, and accept this",
					"%s is outside of network.nodeCIDR, and a session with another autonomous system reaches no farther than one hop", peer.Address)
			}
		}
	}
	c.adviseLocalMachines()
}
