package main

import (
	"fmt"
	"net/netip"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"

	"github.com/slipway-platform/slipway/cluster"
)

// declare returns the cluster of the stack's configuration: on each Proxmox node a control plane, which also runs the workloads. The
// addresses follow from the network. Complete sets the defaults and checks the whole: its error has all problems, each with the path of a
// key of Slipway's configuration.
func declare(ctx *pulumi.Context) (*cluster.Cluster, error) {
	read := config.New(ctx, "")
	var hosts []string
	if err := read.TryObject("hosts", &hosts); err != nil {
		return nil, fmt.Errorf("homelab:hosts: %w; write the Proxmox nodes, such as [pve1]", err)
	}
	network, err := netip.ParsePrefix(read.Get("network"))
	if err != nil || !network.Addr().Is4() || network.Bits() != 24 {
		return nil, fmt.Errorf("homelab:network: %s is not a network; write one such as 10.40.0.0/24", read.Get("network"))
	}
	at := func(last int) netip.Addr {
		address := network.Addr().As4()
		address[3] = byte(last)
		return netip.AddrFrom4(address)
	}

	c := cluster.New(ctx.Stack())
	c.Identity = cluster.Identity{Name: ctx.Stack(), ID: 1}
	c.Proxmox.Endpoint, c.Proxmox.Nodes = read.Get("proxmox"), hosts
	c.Network.NodeCIDR, c.Network.Gateway, c.Network.VIP = network, at(1), at(10)
	c.Network.PodCIDR, c.Network.ServiceCIDR = netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("10.245.0.0/16")
	pool := &c.Network.LoadBalancers
	pool.Start, pool.Stop, pool.Mesh, pool.Gateway = at(100), at(150), at(100), at(120)
	c.Kubernetes.AllowSchedulingOnControlPlanes = true
	c.GitOps.Enabled = false
	machines := cluster.NodePool{Name: "all", Role: cluster.ControlPlane, Cores: 4, Memory: 8 * cluster.GiB, Disk: 40 * cluster.GiB}
	for i, host := range hosts {
		machines.Nodes = append(machines.Nodes, cluster.Node{
			Name: fmt.Sprintf("%s-%d", ctx.Stack(), i+1), Host: host, VMID: 4011 + i,
			MAC: cluster.MAC(fmt.Sprintf("BC:24:11:04:00:%02X", 11+i)), Address: at(11 + i),
		})
	}
	c.NodePools = []cluster.NodePool{machines}

	var findings cluster.Findings
	c.Complete(&findings)
	return c, findings.Err()
}
