package cluster

import (
	"encoding/json"
	"strconv"
)

// Settings returns the values that the GitOps tree can substitute, by name. The tree uses the names: a rename breaks it.
func (c *Cluster) Settings() map[string]string {
	pool := c.Network.LoadBalancers
	blocks := []addressBlock{{pool.Start.String(), pool.Stop.String()}}
	if six := c.Network.IPv6; six != nil && six.LoadBalancers != nil {
		blocks = append(blocks, addressBlock{six.LoadBalancers.Start.String(), six.LoadBalancers.Stop.String()})
	}
	values := map[string]string{
		"CLUSTER_NAME":  c.Identity.Name,
		"CLUSTER_ID":    strconv.Itoa(c.Identity.ID),
		"POD_CIDR":      c.Network.PodCIDR.String(),
		"SERVICE_CIDR":  c.Network.ServiceCIDR.String(),
		"CLUSTER_VIP":   c.Network.VIP.String(),
		"LB_POOL_START": pool.Start.String(),
		"LB_POOL_STOP":  pool.Stop.String(),
		// A list in JSON, which is YAML, too: CiliumLoadBalancerIPPool's spec.blocks.
		"LB_POOL_BLOCKS": asJSON(blocks),
		"LB_ANNOUNCE":    string(pool.Announce),
		"MESH_IP":        pool.Mesh.String(),
		"GATEWAY_IP":     pool.Gateway.String(),
		"STORAGE_ROLE":   string(c.Storage.Role),
	}
	if pool.BGP != nil {
		values["BGP_ASN"], values["BGP_PEERS"] = strconv.Itoa(pool.BGP.ASN), asJSON(bgpPeers(c))
	}
	return values
}

// addressBlock is a block of CiliumLoadBalancerIPPool.
type addressBlock struct {
	Start string `json:"start"`
	Stop  string `json:"stop"`
}

// bgpPeer is a peer of CiliumBGPClusterConfig.
type bgpPeer struct {
	Name          string    `json:"name"`
	PeerASN       int       `json:"peerASN"`
	PeerAddress   string    `json:"peerAddress"`
	PeerConfigRef reference `json:"peerConfigRef"`
}

type reference struct {
	Name string `json:"name"`
}

// bgpPeers returns the routers in Cilium's form. The tree has one CiliumBGPPeerConfig, which has the name of the cluster.
func bgpPeers(c *Cluster) []bgpPeer {
	var peers []bgpPeer
	for _, peer := range c.Network.LoadBalancers.BGP.Peers {
		address := peer.Address.String()
		peers = append(peers, bgpPeer{Name: address, PeerASN: peer.ASN, PeerAddress: address, PeerConfigRef: reference{c.Identity.Name}})
	}
	return peers
}

// asJSON writes a value of texts and numbers.
func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic("cluster: a cluster setting cannot be written: " + err.Error())
	}
	return string(text)
}
