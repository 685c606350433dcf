package workload

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// statusFlags are the flags of the status commands that change what is printed.
type statusFlags struct{ json, short bool }

func statusOptions(args []string) statusFlags {
	var f statusFlags
	for i, a := range args {
		switch {
		case a == "-o" && i+1 < len(args):
			f.json = args[i+1] == "json"
		case a == "-ojson" || a == "-o=json" || a == "--output=json" || a == "--output" && i+1 < len(args) && args[i+1] == "json":
			f.json = true
		case a == "--succinct" || a == "--brief":
			f.short = true
		}
	}
	return f
}

func (f statusFlags) write(w io.Writer, model any, text func(io.Writer, bool) error) (int, error) {
	if !f.json {
		return 0, text(w, f.short)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return 0, e.Encode(model)
}

// The types below have the form of Cilium's own models (api/v1/health/models), as far as the lab fills them.
type (
	healthStatus struct {
		Local         selfStatus   `json:"local"`
		Nodes         []nodeHealth `json:"nodes"`
		ProbeInterval string       `json:"probeInterval"`
		Timestamp     string       `json:"timestamp"`
	}
	selfStatus struct {
		Name string `json:"name"`
	}
	nodeHealth struct {
		Name           string         `json:"name"`
		Host           endpointHealth `json:"host"`
		HealthEndpoint endpointHealth `json:"health-endpoint"`
	}
	endpointHealth struct {
		PrimaryAddress pathStatus `json:"primary-address"`
	}
	pathStatus struct {
		IP   string             `json:"ip"`
		ICMP connectivityStatus `json:"icmp"`
		HTTP connectivityStatus `json:"http"`
	}
	connectivityStatus struct {
		Latency    int64  `json:"latency,omitempty"` // nanoseconds
		Status     string `json:"status"`            // empty: reachable
		LastProbed string `json:"lastProbed"`
	}
)

// health is the report as this agent would give it now. Real agents probe in intervals; these know at once.
func (a *agent) health() healthStatus {
	now := time.Now().UTC()
	out := healthStatus{Local: selfStatus{a.fullName(a.Node)}, ProbeInterval: "10s", Timestamp: now.Format(time.RFC3339)}
	nodes := slices.Clone(a.Cluster.Nodes())
	slices.SortFunc(nodes, func(x, y *corev1.Node) int { return cmp.Compare(x.Name, y.Name) })
	for _, n := range nodes {
		ip := internalIP(n)
		up := a.Cluster.Cilium.Ready(n.Name)
		out.Nodes = append(out.Nodes, nodeHealth{
			Name: a.fullName(n.Name),
			Host: endpointHealth{pathStatus{IP: ip, ICMP: reached(now, ip), HTTP: hello(now, ip, up)}},
			// The health endpoint is the agent's own: without the agent nobody answers there at all.
			HealthEndpoint: endpointHealth{pathStatus{IP: healthIP(n), ICMP: ping(now, healthIP(n), up), HTTP: hello(now, healthIP(n), up)}},
		})
	}
	return out
}

func (a *agent) fullName(node string) string {
	if a.Cluster.Name == "default" {
		return node
	}
	return a.Cluster.Name + "/" + node
}

func (a *agent) healthText(w io.Writer, short bool) error {
	h := a.health()
	var b strings.Builder
	fmt.Fprintf(&b, "Probe time:   %s\nNodes:\n", h.Timestamp)
	for _, n := range h.Nodes {
		suffix := ""
		if n.Name == h.Local.Name {
			suffix = " (localhost)"
		}
		host, endpoint := n.Host.PrimaryAddress, n.HealthEndpoint.PrimaryAddress
		if short {
			state := "reachable"
			if host.HTTP.Status != "" || endpoint.HTTP.Status != "" {
				state = "unreachable"
			}
			fmt.Fprintf(&b, "  %s%s:\t%s\n", n.Name, suffix, state)
			continue
		}
		fmt.Fprintf(&b, "  %s%s:\n    Host connectivity to %s:\n%s    Endpoint connectivity to %s:\n%s", n.Name, suffix, host.IP, host.text(), endpoint.IP, endpoint.text())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (p pathStatus) text() string {
	line := func(c connectivityStatus) string {
		if c.Status != "" {
			return c.Status
		}
		return fmt.Sprintf("OK, RTT=%s", time.Duration(c.Latency))
	}
	return fmt.Sprintf("      ICMP to stack:   %s\n      HTTP to agent:   %s\n", line(p.ICMP), line(p.HTTP))
}

func reached(now time.Time, _ string) connectivityStatus {
	return connectivityStatus{Latency: int64(280 * time.Microsecond), LastProbed: now.Format(time.RFC3339)}
}

func ping(now time.Time, ip string, up bool) connectivityStatus {
	if up {
		return reached(now, ip)
	}
	return connectivityStatus{Status: "Connection timed out", LastProbed: now.Format(time.RFC3339)}
}

func hello(now time.Time, ip string, up bool) connectivityStatus {
	if up {
		return reached(now, ip)
	}
	return connectivityStatus{LastProbed: now.Format(time.RFC3339),
		Status: fmt.Sprintf("Get \"http://%s:4240/hello\": dial tcp %s:4240: connect: connection refused", ip, ip)}
}

func internalIP(n *corev1.Node) string {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}

// healthIP is the second address of the node's pod range: the first is the router's.
func healthIP(n *corev1.Node) string {
	p, err := netip.ParsePrefix(n.Spec.PodCIDR)
	if err != nil {
		return ""
	}
	return p.Masked().Addr().Next().Next().String()
}
