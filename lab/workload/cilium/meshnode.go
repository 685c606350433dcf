package cilium

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
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

// hostAnswers tells whether the kubelet of a peer's node answers, which shows that the machine is up.
func hostAnswers(ctx context.Context, ip string) bool {
	conn, err := (&net.Dialer{Timeout: hostTimeout}).DialContext(ctx, "tcp", net.JoinHostPort(ip, "10250"))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
