// Package contract defines the outputs of a stack, which people, other stacks and tools read: their names and the version of
// their meaning. It imports no Pulumi.
//
// Every output is a flat scalar, because a StackReference reads strings and numbers only. It returns nil for a missing output, so
// a reader must check the version first.
package contract

import "github.com/slipway-platform/slipway/cluster"

// Version is the number of incompatible versions of the outputs so far. A renamed output, or one with another form, needs a new
// Version. A new output does not: Read accepts a stack that was brought up without the output. Read takes from an
// older version what it can.
const Version = 1

// Names of the outputs that do not follow from the stack file alone.
const (
	KubernetesEndpoint = "kubernetesEndpoint"
	Kubeconfig         = "kubeconfig"
	Talosconfig        = "talosconfig"
	GateSpec           = "gateSpec"
	GateReport         = "gateReport"
	HandoverReport     = "handoverReport"
	GitRevision        = "gitRevision"
	MeshSpec           = "meshSpec"
	MeshReport         = "meshReport"
	StorageSpec        = "storageSpec"
	StorageReport      = "storageReport"
	ChecksSpec         = "checksSpec"
	ChecksReport       = "checksReport"
	SealedSecretsCert  = "sealedSecretsCert"

	contractVersion = "contractVersion"
	domainName      = "domain"
	nodeNames       = "nodes"
	nodeCIDR6       = "nodeCidr6"
	lbPoolStart6    = "lbPoolStart6"
)

// Output describes one output.
type Output struct {
	Name     string // part of the contract: a rename needs a new Version
	Number   bool   // a number; the others are text
	Secret   bool   // encrypted in the state, and secret to readers
	Optional bool   // not an output of every stack: a value that is nil or "" is none

	// value returns what the stack file gives: a value, or a pointer to it, or a list of pointers, if Read takes the output. nil means
	// none.
	value  func(*cluster.Cluster) any
	absent bool // Read accepts a stack without it
}

// Outputs returns all outputs, in order.
func Outputs() []Output {
	return []Output{
		{Name: contractVersion, Number: true, value: func(*cluster.Cluster) any { return Version }},
		{Name: "clusterName", value: func(c *cluster.Cluster) any { return &c.Identity.Name }},
		{Name: "clusterId", Number: true, value: func(c *cluster.Cluster) any { return &c.Identity.ID }},
		{Name: "storageRole", value: func(c *cluster.Cluster) any { return &c.Storage.Role }},
		// Only of a consumer.
		{Name: "storageProvider", Optional: true, absent: true, value: func(c *cluster.Cluster) any { return &c.Storage.Provider }},

		{Name: KubernetesEndpoint},                      // https://VIP:6443
		{Name: "talosEndpoints", value: talosEndpoints}, // the control planes' addresses, comma separated
		{Name: "clusterVip", value: func(c *cluster.Cluster) any { return &c.Network.VIP }},
		{Name: "nodeCidr", value: func(c *cluster.Cluster) any { return &c.Network.NodeCIDR }},
		{Name: "podCidr", value: func(c *cluster.Cluster) any { return &c.Network.PodCIDR }},
		{Name: "serviceCidr", value: func(c *cluster.Cluster) any { return &c.Network.ServiceCIDR }},
		{Name: "lbPoolStart", value: func(c *cluster.Cluster) any { return &c.Network.LoadBalancers.Start }},
		{Name: "lbPoolStop", value: func(c *cluster.Cluster) any { return &c.Network.LoadBalancers.Stop }},
		// Only of a cluster in a mesh, or whose file has the address.
		{Name: "meshIp", Optional: true, absent: true, value: func(c *cluster.Cluster) any { return &c.Network.LoadBalancers.Mesh }},
		{Name: "gatewayIp", value: func(c *cluster.Cluster) any { return &c.Network.LoadBalancers.Gateway }},
		// The setting DOMAIN, in lower case.
		{Name: domainName, Optional: true, value: func(c *cluster.Cluster) any { return c.GitOps.Domain() }},

		// The second family; only with config network.ipv6.
		{Name: nodeCIDR6, Optional: true, value: dual(func(c *cluster.Cluster) any { return &c.Network.IPv6.NodeCIDR })},
		{Name: "podCidr6", Optional: true, value: dual(func(c *cluster.Cluster) any { return &c.Network.IPv6.PodCIDR })},
		{Name: "serviceCidr6", Optional: true, value: dual(func(c *cluster.Cluster) any { return &c.Network.IPv6.ServiceCIDR })},
		// Only with that pool.
		{Name: lbPoolStart6, Optional: true, value: pool6(func(p *cluster.IPv6LoadBalancers) any { return &p.Start })},
		{Name: "lbPoolStop6", Optional: true, value: pool6(func(p *cluster.IPv6LoadBalancers) any { return &p.Stop })},

		// The machines, control planes first, each list comma separated.
		{Name: nodeNames, value: each(func(n *cluster.Node) any { return &n.Name })},
		{Name: "nodeAddresses", absent: true, value: each(func(n *cluster.Node) any { return &n.Address })},
		{Name: "nodeAddresses6", Optional: true, absent: true,
			value: dual(each(func(n *cluster.Node) any { return &n.Address6 }))},
		{Name: "macs", absent: true, value: each(func(n *cluster.Node) any { return &n.MAC })},
		{Name: "vmIds", absent: true, value: each(func(n *cluster.Node) any { return &n.VMID })},

		{Name: "proxmoxCluster", absent: true, value: func(c *cluster.Cluster) any { return &c.Proxmox.Cluster }},
		{Name: "proxmoxEndpoint", absent: true, value: func(c *cluster.Cluster) any { return &c.Proxmox.Endpoint }},

		{Name: "talosVersion", value: func(c *cluster.Cluster) any { return c.Talos.Version }},           // such as v1.12.7
		{Name: "kubernetesVersion", value: func(c *cluster.Cluster) any { return c.Kubernetes.Version }}, // such as v1.35.8
		{Name: "ciliumVersion", value: func(c *cluster.Cluster) any { return c.Cilium.Version }},         // such as 1.18.7

		{Name: Kubeconfig, Secret: true},  // cluster-admin kubeconfig, YAML
		{Name: Talosconfig, Secret: true}, // talosctl's configuration, YAML

		// A spec is what a gate expects, JSON without credentials; slipway-probe reads it with --spec. A report is one line of JSON.
		{Name: GateSpec},
		{Name: GateReport},
		{Name: HandoverReport},
		{Name: GitRevision},                       // the revision that Flux has applied, such as main@sha1:…
		{Name: MeshSpec, Optional: true},          // only with config mesh.peers
		{Name: MeshReport, Optional: true},        // only with config mesh.peers
		{Name: StorageSpec, Optional: true},       // only with config storage.classes or storage.drivers
		{Name: StorageReport, Optional: true},     // only with config storage.classes or storage.drivers
		{Name: ChecksSpec, Optional: true},        // only with config checks
		{Name: ChecksReport, Optional: true},      // only with config checks
		{Name: SealedSecretsCert, Optional: true}, // certificate for kubeseal --cert, PEM; only with config secrets.sealedSecrets
	}
}

// dual returns a value of a dual-stack cluster.
func dual(value func(*cluster.Cluster) any) func(*cluster.Cluster) any {
	return func(c *cluster.Cluster) any {
		if c.Network.IPv6 == nil {
			return nil
		}
		return value(c)
	}
}

// pool6 returns a value of the pool of IPv6 addresses.
func pool6(value func(*cluster.IPv6LoadBalancers) any) func(*cluster.Cluster) any {
	return dual(func(c *cluster.Cluster) any {
		if c.Network.IPv6.LoadBalancers == nil {
			return nil
		}
		return value(c.Network.IPv6.LoadBalancers)
	})
}

// each returns the list of a value of each machine. A cluster that Read makes has all machines in one pool.
func each(value func(*cluster.Node) any) func(*cluster.Cluster) any {
	return func(c *cluster.Cluster) any {
		var list []any
		for _, machine := range c.Machines() {
			list = append(list, value(&machine.Node))
		}
		if c.Running {
			for i := range c.NodePools[0].Nodes {
				list = append(list, value(&c.NodePools[0].Nodes[i]))
			}
		}
		return list
	}
}

func talosEndpoints(c *cluster.Cluster) any {
	var addresses []any
	for _, machine := range c.Serving(c.ControlPlanes()) {
		addresses = append(addresses, &machine.Address)
	}
	return written(addresses)
}
