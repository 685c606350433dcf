package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/components/readiness/health"
)

// How long a good report of an agent is believed before it is asked for again.
const goodReportFor = 5 * time.Second

// WatchCiliumHealth asks the agent of each node for its own health report while it is Ready, until ctx ends.
func WatchCiliumHealth(ctx context.Context, k *Kube, store *Store[health.Cluster]) {
	type asked struct {
		pod  string
		due  time.Time
		busy bool
	}
	var mu sync.Mutex
	state := map[string]*asked{}
	var running sync.WaitGroup
	defer running.Wait()

	every(ctx, pollEvery/2, func() {
		ready := map[string]health.Pod{}
		store.Read(func(seen *health.Cluster) {
			for _, pod := range seen.Agents.Items {
				if pod.Ready && !pod.Deleting {
					ready[pod.Node] = pod
				}
			}
		})
		mu.Lock()
		defer mu.Unlock()
		for node, agent := range state {
			if pod, still := ready[node]; !still || pod.Name != agent.pod {
				delete(state, node)
				store.Update(func(seen *health.Cluster) { delete(seen.CiliumHealth, node) })
			}
		}
		for node, pod := range ready {
			agent := state[node]
			if agent == nil {
				agent = &asked{pod: pod.Name}
				state[node] = agent
			}
			if agent.busy || time.Now().Before(agent.due) {
				continue
			}
			agent.busy = true
			running.Go(func() {
				report := k.ciliumHealth(ctx, pod)
				mu.Lock()
				defer mu.Unlock()
				agent.busy, agent.due = false, time.Now().Add(pollEvery)
				if report.Healthy() {
					agent.due = time.Now().Add(goodReportFor)
				}
				if ctx.Err() != nil || state[node] != agent {
					return // the pod has gone, and its report with it
				}
				store.Update(func(seen *health.Cluster) {
					if seen.CiliumHealth == nil {
						seen.CiliumHealth = map[string]health.CiliumHealth{}
					}
					seen.CiliumHealth[node] = report
				})
			})
		}
	})
}

func (k *Kube) ciliumHealth(ctx context.Context, pod health.Pod) health.CiliumHealth {
	out, err := k.exec(ctx, pod.Namespace, pod.Name, "cilium-agent", "cilium-health", "status", "-o", "json")
	if err != nil {
		return health.CiliumHealth{Pod: pod.Name, Asked: true, Err: err.Error()}
	}
	peers, err := parseCiliumHealth(out)
	if err != nil {
		return health.CiliumHealth{Pod: pod.Name, Asked: true, Err: err.Error()}
	}
	return health.CiliumHealth{Pod: pod.Name, Asked: true, Peers: peers}
}

// healthStatus is the part of Cilium's HealthStatusResponse that the gate reads.
type healthStatus struct {
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

func parseCiliumHealth(report []byte) (map[string]health.CiliumPeer, error) {
	var status healthStatus
	if err := json.Unmarshal(report, &status); err != nil {
		return nil, fmt.Errorf("cilium-health's report is no JSON of its status: %w", err)
	}
	peers := map[string]health.CiliumPeer{}
	for _, node := range status.Nodes {
		// In a named cluster Cilium writes cluster/node.
		name := node.Name[strings.LastIndex(node.Name, "/")+1:]
		peers[name] = health.CiliumPeer{Host: node.Host.problem(), Endpoint: node.HealthEndpoint.problem()}
	}
	return peers, nil
}

// problem is "" when all addresses of the path are reachable.
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
