package observe

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health/gate"
)

// ciliumHealth asks an agent which nodes it reaches. ready is when the agents became Ready, by node.
func (k *Kube) ciliumHealth(ctx context.Context, namespace, pod string, ready map[string]time.Time) gate.CiliumHealth {
	seen := gate.CiliumHealth{Asked: true}
	out, err := k.exec(ctx, namespace, pod, cluster.CiliumAgentContainer, "cilium-health", "status", "-o", "json")
	if err == nil {
		seen.Peers, err = parseCiliumHealth(out, ready)
	}
	if err != nil {
		seen.Err = err.Error()
	}
	return seen
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
	Status     string    `json:"status"` // "" means reachable
	LastProbed time.Time `json:"lastProbed"`
}

// parseCiliumHealth reads the output of cilium-health. An agent probes all nodes in rounds of tens of seconds, also if it is asked with
// --probe. So a report may be older than a node's agent, and then does not count for this node.
func parseCiliumHealth(report []byte, ready map[string]time.Time) (map[string]gate.CiliumPeer, error) {
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
		since := ready[name]
		peers[name] = gate.CiliumPeer{Host: node.Host.problem(since), Endpoint: node.HealthEndpoint.problem(since)}
	}
	return peers, nil
}

func clusterOf(node string) (cluster, name string) {
	i := strings.LastIndex(node, "/")
	return node[:max(i, 0)], node[i+1:]
}

// problem returns why an address of the path is not reachable; "" if all are, by probes that ended after since.
func (p *pathStatus) problem(since time.Time) string {
	if p == nil || p.Primary == nil {
		return "not probed yet"
	}
	pending := ""
	for _, address := range append([]*addressStatus{p.Primary}, p.Secondary...) {
		if address == nil {
			continue
		}
		for _, probe := range []struct {
			name   string
			status *probeStatus
		}{{"ICMP", address.ICMP}, {"HTTP", address.HTTP}} {
			switch {
			case probe.status == nil:
				pending = cmp.Or(pending, address.IP+" not probed yet")
			case probe.status.Status != "":
				return fmt.Sprintf("%s to %s: %s", probe.name, address.IP, probe.status.Status)
			case probe.status.LastProbed.Before(since):
				pending = cmp.Or(pending, address.IP+" not probed since its agent became Ready")
			}
		}
	}
	return pending
}
