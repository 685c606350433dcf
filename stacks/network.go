package stacks

import (
	"net/netip"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/cilium"
	"github.com/slipway-platform/slipway/components/core"
	"github.com/slipway-platform/slipway/internal/machineconfig"
	"github.com/slipway-platform/slipway/stacks/config"
)

// inline tells whether the machines carry Cilium's manifests, instead of Helm installing them.
func (p *plan) inline() bool { return p.stack.Cilium.Mode == config.CiliumInline }

// values are the choices that make the cluster's Cilium.
func values(s *config.Stack) cilium.Values {
	v := cilium.Values{
		ClusterName:       s.Cluster.Name,
		ClusterID:         s.Cluster.ID,
		PodCIDR:           s.Network.PodCIDR,
		KubePrismPort:     machineconfig.KubePrismPort,
		Routing:           cilium.Routing(s.Cilium.Routing),
		Masquerade:        cilium.Masquerade(s.Cilium.Masquerade),
		HostDNSForwarding: machineconfig.HostDNSForwarding,
		GatewayAPI:        s.Cilium.GatewayAPI.On(),
		Hubble: &cilium.Hubble{
			Enabled: s.Cilium.Hubble.Enabled.On(), Relay: s.Cilium.Hubble.Relay.On(), UI: s.Cilium.Hubble.UI,
		},
		BGP:             s.Cilium.BGP,
		L2Announcements: s.Cilium.L2Announcements,
		Encryption:      cilium.Encryption(s.Cilium.Encryption),
		Bandwidth:       cilium.Bandwidth(s.Cilium.BandwidthManager),
		LoadBalancers: cilium.LoadBalancers{
			Start: s.Network.LoadBalancers.Start, Stop: s.Network.LoadBalancers.Stop, Mesh: s.Network.LoadBalancers.Mesh,
		},
	}
	if s.Network.IPv6 != nil {
		v.PodCIDR6 = s.Network.IPv6.PodCIDR
	}
	return v
}

func (c *chain) anyCilium() *cilium.CiliumCoreArgs {
	return &cilium.CiliumCoreArgs{
		Values:      c.values,
		Mode:        cilium.Mode(c.stack.Cilium.Mode),
		Version:     c.stack.Cilium.Version,
		Repository:  c.stack.Cilium.Repository,
		TLSProvider: c.providers.tls,
	}
}

// inlineCilium needs no cluster: its manifests go into the machines' configuration.
func (c *chain) inlineCilium() *cilium.CiliumCoreArgs {
	args := c.anyCilium()
	args.KubernetesVersion = c.stack.Kubernetes.Version
	args.KubernetesProvider = c.providers.renderer
	return args
}

// releasedCilium is installed into the cluster, after the definitions that its operator looks for when it starts.
func (c *chain) releasedCilium() *cilium.CiliumCoreArgs {
	args := c.anyCilium()
	args.Kubeconfig = c.cluster.Kubeconfig
	args.KubernetesProvider = c.providers.kubernetes
	args.DependsOn = append(c.definitions(), c.mode, c.machines.Probe())
	args.DeletedWith = c.cluster.Bootstrap()
	return args
}

func (c *chain) operatorRestart() *cilium.CRDsArgs {
	return &cilium.CRDsArgs{
		CRDs:               pulumi.String(c.stack.CRDs.GatewayAPI.Version),
		KubernetesProvider: c.providers.kubernetes,
		DependsOn:          append(c.definitions(), c.gate.Probe()),
		DeletedWith:        c.cluster.Bootstrap(),
	}
}

// crdsArgs are nil where the stack takes no definitions at all.
func (c *chain) crdsArgs() *core.CRDsArgs {
	var sources []core.CRDSource
	for _, one := range c.stack.CRDs.Sources() {
		sources = append(sources, core.CRDSource{
			Set: one.Set, Version: one.Source.Version, URL: one.Source.URL, SHA256: one.Source.SHA256,
		})
	}
	if len(sources) == 0 {
		return nil
	}
	return &core.CRDsArgs{
		Cluster:         c.stack.Cluster.Name,
		Kubeconfig:      c.cluster.Kubeconfig,
		Sources:         sources,
		CommandProvider: c.providers.command,
		DependsOn:       []pulumi.Resource{c.machines.Probe()},
		DeletedWith:     c.cluster.Bootstrap(),
	}
}

// definitions are the leaf to wait for, for whoever needs the CRDs.
func (c *chain) definitions() []pulumi.Resource {
	if c.crds == nil {
		return nil
	}
	return []pulumi.Resource{c.crds.Applied()}
}

// serviceCIDRs are the Services' networks, IPv4 first.
func serviceCIDRs(n config.Network) []netip.Prefix {
	if n.IPv6 == nil {
		return []netip.Prefix{n.ServiceCIDR}
	}
	return []netip.Prefix{n.ServiceCIDR, n.IPv6.ServiceCIDR}
}

// podCIDRs are the pods' networks, IPv4 first.
func podCIDRs(n config.Network) []netip.Prefix {
	if n.IPv6 == nil {
		return []netip.Prefix{n.PodCIDR}
	}
	return []netip.Prefix{n.PodCIDR, n.IPv6.PodCIDR}
}

func spelt(networks []netip.Prefix) []string {
	var texts []string
	for _, network := range networks {
		texts = append(texts, network.String())
	}
	return texts
}
