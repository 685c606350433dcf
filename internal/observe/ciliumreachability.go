package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

func (k *Kube) ciliumHealth(ctx context.Context, pod kube.Pod) gate.CiliumHealth {
	out, err := k.exec(ctx, pod.Namespace, pod.Name, "cilium-agent", "cilium-health", "status", "-o", "json")
	if err != nil {
		return gate.CiliumHealth{Asked: true, Err: err.Error()}
	}
	peers, err := parseCiliumHealth(out)
	if err != nil {
		return gate.CiliumHealth{Asked: true, Err: err.Error()}
	}
	return gate.CiliumHealth{Asked: true, Peers: peers}
}

// healthStatus is the part of Cilium's HealthStatusResponse that the gate reads.
type healthStatus struct {
	Local struct {
		Name string `json:"name"`
	} `json:"local"`
	Nodes []struct {
		Name           string      `json:"name"`
		Host           *pathStatus `json:"host"`
		HealthEndpoint *pathStatus `json:"health-endpoint"`
	} `json:"nodes"`
}

type pathStatus struct {
	Primary   *addressStatus   `json:"primary-address"`
	Secondary []*addressStatus `json:"secondary-addresses"`
}

type addressStatus struct {
	IP   string       `json:"ip"`
	ICMP *probeStatus `json:"icmp"`
	HTTP *probeStatus `json:"http"`
}

type probeStatus struct {
	Status string `json:"status"` // "" means reachable
}

func parseCiliumHealth(report []byte) (map[string]gate.CiliumPeer, error) {
	var status healthStatus
	if err := json.Unmarshal(report, &status); err != nil {
		return nil, fmt.Errorf("cilium-health's report is not the expected JSON: %w", err)
	}
	peers := map[string]gate.CiliumPeer{}
	for _, node := range status.Nodes {
		// In a named cluster Cilium writes cluster/node. A mesh has the nodes of other clusters, too, which may have the same names.
		cluster, name := clusterOf(node.Name)
		if own, _ := clusterOf(status.Local.Name); cluster != "" && cluster != own {
			continue
		}
		peers[name] = gate.CiliumPeer{Host: node.Host.problem(), Endpoint: node.HealthEndpoint.problem()}
	}
	return peers, nil
}

func clusterOf(node string) (cluster, name string) {
	i := strings.LastIndex(node, "/")
	return node[:max(i, 0)], node[i+1:]
}

// problem returns why an address of the path is not reachable; "" if all are.
func (p *pathStatus) problem() string {
	if p == nil || p.Primary == nil {
		return "not probed yet"
	}
	for _, address := range append([]*addressStatus{p.Primary}, p.Secondary...) {
		if address == nil {
			continue
		}
		if address.ICMP == nil && address.HTTP == nil {
			return address.IP + " not probed yet"
		}
		for _, probe := range []struct {
			name   string
			status *probeStatus
		}{{"ICMP", address.ICMP}, {"HTTP", address.HTTP}} {
			if probe.status != nil && probe.status.Status != "" {
				return fmt.Sprintf("%s to %s: %s", probe.name, address.IP, probe.status.Status)
			}
		}
	}
	return ""
}
