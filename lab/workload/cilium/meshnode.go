package cilium

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"slices"
	"time"
)

// hostTimeout is how long a node of a peer may take to answer.
const hostTimeout = time.Second

// meshNode is a node of a peer as Cilium writes it.
type meshNode struct {
	Name        string
	Cluster     string
	IPAddresses []struct {
		Type string
		IP   string
	}
	IPv4AllocCIDR, IPv6AllocCIDR *struct {
		IP   string
		Mask []byte
	}
	IPv4HealthIP, IPv6HealthIP string
}

// remoteNodes are the nodes of all peers, by name.
func (a *agent) remoteNodes() []meshNode {
	a.mesh.mu.Lock()
	defer a.mesh.mu.Unlock()
	var out []meshNode
	for _, p := range a.mesh.peers {
		p.mu.Lock()
		if read := p.reads[meshNodes]; read != nil {
			for _, raw := range read.keys {
				var n meshNode
				if json.Unmarshal(raw, &n) == nil {
					out = append(out, n)
				}
			}
		}
		p.mu.Unlock()
	}
	slices.SortFunc(out, func(x, y meshNode) int { return cmp.Or(cmp.Compare(x.Cluster, y.Cluster), cmp.Compare(x.Name, y.Name)) })
	return out
}

// addresses returns a node's addresses of a type.
func (n meshNode) addresses(of string) (ips []string) {
	for _, one := range n.IPAddresses {
		if one.Type == of {
			ips = append(ips, one.IP)
		}
	}
	return ips
}

// health are the addresses of the node's health endpoint.
func (n meshNode) health() []string {
	return slices.DeleteFunc([]string{n.IPv4HealthIP, n.IPv6HealthIP}, func(ip string) bool { return ip == "" })
}

// ranges are the node's pod ranges, by family.
func (n meshNode) ranges() map[string]string {
	out := map[string]string{}
	for name, cidr := range map[string]*struct {
		IP   string
		Mask []byte
	}{"ipv4": n.IPv4AllocCIDR, "ipv6": n.IPv6AllocCIDR} {
		if cidr == nil {
			continue
		}
		if ip, err := netip.ParseAddr(cidr.IP); err == nil {
			ones, _ := net.IPMask(cidr.Mask).Size()
			out[name] = netip.PrefixFrom(ip, ones).String()
		}
	}
	return out
}

// element is the node in the agent's list of nodes.
func (n meshNode) element() nodeElement {
	e := nodeElement{Name: fullName(n.Cluster, n.Name), PrimaryAddress: &nodeAddressing{}, HealthEndpointAddress: &nodeAddressing{},
		IngressAddress: &nodeAddressing{}, SecondaryAddresses: []addressingElement{}, Source: "clustermesh"}
	for _, ip := range n.health() {
		e.HealthEndpointAddress.set(addressingElement{Enabled: true, IP: ip})
	}
	for _, ip := range n.addresses("CiliumInternalIP") {
		e.SecondaryAddresses = append(e.SecondaryAddresses, addressingElement{AddressType: "CiliumInternalIP", IP: ip})
	}
	ranges := n.ranges()
	for _, ip := range n.addresses("InternalIP") {
		e.PrimaryAddress.set(addressingElement{AddressType: "InternalIP", AllocRange: ranges[family(ip)], Enabled: true, IP: ip})
	}
	return e
}

// hostAnswers tells whether the kubelet of a peer's node answers, which shows that the machine is up.
func hostAnswers(ctx context.Context, ip string) bool {
	conn, err := (&net.Dialer{Timeout: hostTimeout}).DialContext(ctx, "tcp", net.JoinHostPort(ip, "10250"))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
