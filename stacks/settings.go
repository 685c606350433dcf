package stacks

import (
	"strconv"

	"github.com/slipway-platform/slipway/components/gitops"
	"github.com/slipway-platform/slipway/stacks/config"
)

// settings are what the cluster tells the GitOps tree about itself. The names are used there: a rename breaks it.
func settings(stack *config.Stack) gitops.Settings {
	return gitops.Settings{
		"CLUSTER_NAME":  stack.Cluster.Name,
		"CLUSTER_ID":    strconv.Itoa(stack.Cluster.ID),
		"POD_CIDR":      stack.Network.PodCIDR.String(),
		"SERVICE_CIDR":  stack.Network.ServiceCIDR.String(),
		"CLUSTER_VIP":   stack.Network.VIP.String(),
		"LB_POOL_START": stack.Network.LoadBalancers.Start.String(),
		"LB_POOL_STOP":  stack.Network.LoadBalancers.Stop.String(),
		"MESH_IP":       stack.Network.LoadBalancers.Mesh.String(),
		"GATEWAY_IP":    stack.Network.LoadBalancers.Gateway.String(),
		"STORAGE_ROLE":  string(stack.Storage.Role),
	}
}
