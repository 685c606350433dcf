package contract

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
)

// Declared returns the outputs that follow from the stack file alone.
func Declared(c *cluster.Cluster) map[string]any {
	network, pool := c.Network, c.Network.LoadBalancers
	outputs := map[string]any{
		ContractVersion:   Version,
		ClusterName:       c.Identity.Name,
		ClusterID:         c.Identity.ID,
		StorageRole:       string(c.Storage.Role),
		ClusterVIP:        network.VIP.String(),
		NodeCIDR:          network.NodeCIDR.String(),
		PodCIDR:           network.PodCIDR.String(),
		ServiceCIDR:       network.ServiceCIDR.String(),
		LBPoolStart:       pool.Start.String(),
		LBPoolStop:        pool.Stop.String(),
		MeshIP:            pool.Mesh.String(),
		GatewayIP:         pool.Gateway.String(),
		ProxmoxCluster:    c.Proxmox.Cluster,
		ProxmoxEndpoint:   c.Proxmox.Endpoint,
		TalosVersion:      c.Talos.Version,
		KubernetesVersion: c.Kubernetes.Version,
		CiliumVersion:     c.Cilium.Version,
		TalosEndpoints:    list(c.ControlPlanes(), func(m cluster.Machine) any { return m.Address }),
	}
	if provider := c.Storage.Provider; provider != "" {
		outputs[StorageProvider] = provider
	}
	if domain := c.GitOps.Domain(); domain != "" {
		outputs[Domain] = domain
	}
	if six := network.IPv6; six != nil {
		outputs[NodeCIDR6], outputs[PodCIDR6], outputs[ServiceCIDR6] = six.NodeCIDR.String(), six.PodCIDR.String(), six.ServiceCIDR.String()
		if pool := six.LoadBalancers; pool != nil {
			outputs[LBPoolStart6], outputs[LBPoolStop6] = pool.Start.String(), pool.Stop.String()
		}
		outputs[NodeAddresses6] = list(c.Machines(), func(m cluster.Machine) any { return m.Address6 })
	}
	for name, value := range machineLists {
		outputs[name] = list(c.Machines(), value)
	}
	return outputs
}

// machineLists are the lists of all machines, each with the value of one of them.
var machineLists = map[string]func(cluster.Machine) any{
	Nodes:         func(m cluster.Machine) any { return m.Name },
	NodeAddresses: func(m cluster.Machine) any { return m.Address },
	MACs:          func(m cluster.Machine) any { return m.MAC },
	VMIDs:         func(m cluster.Machine) any { return m.VMID },
}

// list joins a value of each machine.
func list(machines []cluster.Machine, value func(cluster.Machine) any) string {
	texts := make([]string, len(machines))
	for i, machine := range machines {
		texts[i] = fmt.Sprint(value(machine))
	}
	return strings.Join(texts, ",")
}

// Unread is what keeps outputs from being read, all of them or one.
type Unread struct {
	Problem, Remedy string

	Older bool // the outputs are of an older version, which the next up of their stack ends
}

const remedyUp = "run its `pulumi up` with this program"

// Read returns the cluster that the outputs of a stack describe, as much of it as can be read, with what other clusters must know of it.
// Of a newer version it reads nothing, because the outputs may mean anything.
func Read(stack string, outputs map[string]any) (*cluster.Cluster, []Unread) {
	const versions = "was brought up with outputs of version %d, and this program has version %d"
	version, err := strconv.Atoi(cmp.Or(text(outputs[ContractVersion]), "0"))
	switch {
	case err != nil:
		return nil, []Unread{{Problem: fmt.Sprintf("has the output %s: %v", ContractVersion, err), Remedy: remedyUp}}
	case version > Version:
		return nil, []Unread{{Problem: fmt.Sprintf(versions, version, Version), Remedy: "update this checkout, which is older"}}
	}
	r := &reader{outputs: outputs}
	c := &cluster.Cluster{Stack: stack, Running: true}
	c.Identity.Name, c.Identity.ID = r.text(ClusterName), read(r, ClusterID, strconv.Atoi)
	c.Storage.Role, c.Storage.Provider = cluster.StorageRole(r.text(StorageRole)), text(outputs[StorageProvider])
	n := &c.Network
	n.VIP, n.NodeCIDR, n.PodCIDR, n.ServiceCIDR = r.address(ClusterVIP), r.network(NodeCIDR), r.network(PodCIDR), r.network(ServiceCIDR)
	n.LoadBalancers.Start, n.LoadBalancers.Stop = r.address(LBPoolStart), r.address(LBPoolStop)
	n.LoadBalancers.Mesh, n.LoadBalancers.Gateway = r.address(MeshIP), r.address(GatewayIP)
	c.GitOps = cluster.GitOps{Enabled: true, Settings: map[string]string{cluster.DomainSetting: text(outputs[Domain])}}
	c.Proxmox.Cluster, c.Proxmox.Endpoint = text(outputs[ProxmoxCluster]), text(outputs[ProxmoxEndpoint])
	if r.has(NodeCIDR6) {
		n.IPv6 = &cluster.IPv6{NodeCIDR: r.network(NodeCIDR6), PodCIDR: r.network(PodCIDR6), ServiceCIDR: r.network(ServiceCIDR6)}
		if r.has(LBPoolStart6) {
			n.IPv6.LoadBalancers = &cluster.IPv6LoadBalancers{Start: r.address(LBPoolStart6), Stop: r.address(LBPoolStop6)}
		}
	}
	c.NodePools = []cluster.NodePool{{Nodes: r.machines()}}
	if version < Version { // it may lack outputs, or have them in another form
		return c, []Unread{{Problem: fmt.Sprintf(versions, version, Version), Remedy: remedyUp, Older: true}}
	}
	return c, r.problems
}

// reader reads outputs and collects the problems.
type reader struct {
	outputs  map[string]any
	problems []Unread
}

func (r *reader) found(format string, args ...any) {
	r.problems = append(r.problems, Unread{Problem: fmt.Sprintf(format, args...), Remedy: remedyUp})
}

// has reports whether the stack has an output. Some are not of every stack, and a stack that was brought up earlier lacks newer ones.
func (r *reader) has(name string) bool { return text(r.outputs[name]) != "" }

func (r *reader) text(name string) string {
	value := text(r.outputs[name])
	if value == "" {
		r.found("has no output %s", name)
	}
	return value
}

func (r *reader) address(name string) netip.Addr { return read(r, name, netip.ParseAddr) }

func (r *reader) network(name string) netip.Prefix { return read(r, name, netip.ParsePrefix) }

// machines returns the machines, control planes first.
func (r *reader) machines() []cluster.Node {
	names := strings.Split(r.text(Nodes), ",")
	nodes := make([]cluster.Node, len(names))
	for i, name := range names {
		nodes[i].Name = name
	}
	each(r, NodeAddresses, nodes, netip.ParseAddr, func(n *cluster.Node, value netip.Addr) { n.Address = value })
	each(r, NodeAddresses6, nodes, netip.ParseAddr, func(n *cluster.Node, value netip.Addr) { n.Address6 = value })
	each(r, VMIDs, nodes, strconv.Atoi, func(n *cluster.Node, value int) { n.VMID = value })
	each(r, MACs, nodes, func(text string) (cluster.MAC, error) { return cluster.MAC(text), nil },
		func(n *cluster.Node, value cluster.MAC) { n.MAC = value })
	return nodes
}

// each gives every machine its value of a list, which the stack may lack.
func each[T any](r *reader, name string, nodes []cluster.Node, parse func(string) (T, error), give func(*cluster.Node, T)) {
	if !r.has(name) {
		return
	}
	texts := strings.Split(r.text(name), ",")
	if len(texts) != len(nodes) {
		r.found("has the output %s with %d items for %d machines", name, len(texts), len(nodes))
		return
	}
	for i, text := range texts {
		give(&nodes[i], parsed(r, name, text, parse))
	}
}

// read returns an output that every stack has.
func read[T any](r *reader, name string, parse func(string) (T, error)) (value T) {
	if given := r.text(name); given != "" {
		return parsed(r, name, given, parse)
	}
	return value
}

func parsed[T any](r *reader, name, given string, parse func(string) (T, error)) T {
	value, err := parse(given)
	if err != nil {
		r.found("has the output %s: %v", name, err)
	}
	return value
}

// text returns an output as text. Pulumi reads numbers as float64.
func text(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}
