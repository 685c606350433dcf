package stacks

import (
	"strconv"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/gitops"
)

// settings returns the values that the GitOps tree can substitute. It uses their names: a rename breaks it.
func settings(c *cluster.Cluster) gitops.Settings {
	return gitops.Settings{
		"CLUSTER_NAME":  c.Identity.Name,
		"CLUSTER_ID":    strconv.Itoa(c.Identity.ID),
		"POD_CIDR":      c.Network.PodCIDR.String(),
		"SERVICE_CIDR":  c.Network.ServiceCIDR.String(),
		"CLUSTER_VIP":   c.Network.VIP.String(),
		"LB_POOL_START": c.Network.LoadBalancers.Start.String(),
		"LB_POOL_STOP":  c.Network.LoadBalancers.Stop.String(),
		"MESH_IP":       c.Network.LoadBalancers.Mesh.String(),
		"GATEWAY_IP":    c.Network.LoadBalancers.Gateway.String(),
		"STORAGE_ROLE":  string(c.Storage.Role),
	}
}
