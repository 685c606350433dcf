package contract

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/slipway-platform/slipway/cluster"
)

// Declared returns the outputs that follow from the stack file alone.
func Declared(c *cluster.Cluster) map[string]any {
	network, pool := c.Network, c.Network.LoadBalancers
	return map[string]any{
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
		TalosVersion:      c.Talos.Version,
		KubernetesVersion: c.Kubernetes.Version,
		CiliumVersion:     c.Cilium.Version,
	}
}

// Read returns the cluster that the outputs of a stack describe, with what other clusters must know of it. Its problems name the outputs
// that cannot be read; another version is the only problem, because its outputs may mean anything.
func Read(stack string, outputs map[string]any) (*cluster.Cluster, error) {
	if version := text(outputs[ContractVersion]); version != strconv.Itoa(Version) {
		return nil, fmt.Errorf("was brought up with outputs of version %q, and this program reads version %d; run `pulumi up` of %s with this "+
			"program, or use the one that it was brought up with", version, Version, stack)
	}
	r := reader{outputs: outputs}
	c := &cluster.Cluster{Stack: stack}
	c.Identity.Name, c.Identity.ID = r.text(ClusterName), r.number(ClusterID)
	n := &c.Network
	n.VIP, n.NodeCIDR, n.PodCIDR, n.ServiceCIDR = r.address(ClusterVIP), r.network(NodeCIDR), r.network(PodCIDR), r.network(ServiceCIDR)
	n.LoadBalancers.Start, n.LoadBalancers.Stop = r.address(LBPoolStart), r.address(LBPoolStop)
	n.LoadBalancers.Mesh, n.LoadBalancers.Gateway = r.address(MeshIP), r.address(GatewayIP)
	return c, errors.Join(r.problems...)
}

// reader reads outputs and collects the problems.
type reader struct {
	outputs  map[string]any
	problems []error
}

func (r *reader) text(name string) string {
	value := text(r.outputs[name])
	if value == "" {
		r.problems = append(r.problems, fmt.Errorf("has no output %s", name))
	}
	return value
}

func (r *reader) number(name string) int { return parsed(r, name, strconv.Atoi) }

func (r *reader) address(name string) netip.Addr { return parsed(r, name, netip.ParseAddr) }

func (r *reader) network(name string) netip.Prefix { return parsed(r, name, netip.ParsePrefix) }

func parsed[T any](r *reader, name string, parse func(string) (T, error)) (value T) {
	given := r.text(name)
	if given == "" {
		return value
	}
	value, err := parse(given)
	if err != nil {
		r.problems = append(r.problems, fmt.Errorf("has the output %s: %w", name, err))
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
