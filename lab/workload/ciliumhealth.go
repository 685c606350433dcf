package workload

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// probeInterval is the interval of cilium-health's probes. A real one is a minute or two, depending on the number of
// nodes.
const probeInterval = time.Second

// statusFlags are the flags that change the output of the status commands.
type statusFlags struct{ json, short, verbose, probe bool }

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
		case a == "--verbose" || a == "--all-health" || a == "--all-nodes":
			f.verbose = true
		case a == "--probe":
			f.probe = true
		}
	}
	return f
}

func (f statusFlags) write(w io.Writer, model any, text func(io.Writer, statusFlags) (int, error)) (int, error) {
	if !f.json {
		return text(w, f)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return 0, e.Encode(model)
}

// health is the report of the last probes. It probes again if they are older than the interval, or if now is set.
func (a *agent) health(now bool) healthStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now || time.Since(a.probed) > min(probeInterval, 2*a.Cluster.PodStart) {
		a.report, a.probed = a.probePeers(a.config.cluster()), time.Now()
	}
	return a.report
}

func (a *agent) probePeers(cluster string) healthStatus {
	now := time.Now().UTC().Format(time.RFC3339)
	out := healthStatus{Local: selfStatus{fullName(cluster, a.Node)}, ProbeInterval: probeInterval.String(), Timestamp: now}
	nodes := slices.Clone(a.Cluster.Nodes())
	slices.SortFunc(nodes, func(x, y *corev1.Node) int { return cmp.Compare(x.Name, y.Name) })
	for _, n := range nodes {
		if !a.Cluster.Cilium.known(n.Name) {
			continue // the node has no CiliumNode yet
		}
		p := probes{at: now, up: a.Cluster.Cilium.Ready(n.Name)}
		p.errorText, p.cut = a.cannotReach(n.Name)
		health := &nodeHealth{Name: fullName(cluster, n.Name), Host: p.addresses(internalIPs(n), true),
			HealthEndpoint: p.addresses(healthIPs(PodCIDRs(n, a.Cluster.Faults)), false)}
		health.Endpoint = health.HealthEndpoint.PrimaryAddress
		out.Nodes = append(out.Nodes, health)
	}
	return out
}

// fullName is Cilium's name of a node: with its cluster, unless that has the default name.
func fullName(cluster, node string) string {
	if cluster == "default" {
		return node
	}
	return cluster + "/" + node
}

// probes are the results of probing one node.
type probes struct {
	at        string
	up        bool   // a ready agent runs there
	cut       bool   // no probe reaches the node
	errorText string // of the failed probe; empty: the usual one
}

func (p probes) addresses(ips []string, host bool) *addressesHealth {
	out := &addressesHealth{SecondaryAddresses: []*pathStatus{}}
	for i, ip := range ips {
		path := &pathStatus{IP: ip, ICMP: p.ping(host), HTTP: p.hello(ip)}
		if i == 0 {
			out.PrimaryAddress = path
		} else {
			out.SecondaryAddresses = append(out.SecondaryAddresses, path)
		}
	}
	return out
}

// ping answers on a host without an agent, but not on its health endpoint, which belongs to the agent.
func (p probes) ping(host bool) *connectivityStatus {
	if p.cut || !p.up && !host {
		return &connectivityStatus{Status: "Connection timed out", LastProbed: p.at}
	}
	return &connectivityStatus{Latency: int64(280 * time.Microsecond), LastProbed: p.at}
}

func (p probes) hello(ip string) *connectivityStatus {
	address := net.JoinHostPort(ip, "4240")
	switch {
	case p.cut && p.errorText != "":
		return &connectivityStatus{Status: p.errorText, LastProbed: p.at}
	case p.cut:
		return &connectivityStatus{Status: fmt.Sprintf("Get \"http://%s/hello\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)", address), LastProbed: p.at}
	case !p.up:
		return &connectivityStatus{Status: fmt.Sprintf("Get \"http://%s/hello\": dial tcp %s: connect: connection refused", address, address),
			LastProbed: p.at}
	}
	return &connectivityStatus{Latency: int64(520 * time.Microsecond), LastProbed: p.at}
}

// healthText prints the report as cilium-health does.
func (a *agent) healthText(w io.Writer, f statusFlags) (int, error) {
	t := tabwriter.NewWriter(w, 2, 0, 3, ' ', 0)
	printHealth(t, a.health(f.probe), true, f.verbose)
	return 0, t.Flush()
}

func printHealth(w io.Writer, h healthStatus, all, verbose bool) {
	healthy := 0
	for _, n := range h.Nodes {
		if n.healthy() {
			healthy++
		}
	}
	fmt.Fprintf(w, "Cluster health:\t%d/%d reachable\t(%s)\t(Probe interval: %s)\nName\tIP\tNode\tEndpoints\n", healthy, len(h.Nodes),
		h.Timestamp, h.ProbeInterval)
	local := func(n *nodeHealth) int { // the local node is printed first
		if n.Name == h.Local.Name {
			return 0
		}
		return 1
	}
	for _, n := range slices.SortedStableFunc(slices.Values(h.Nodes), func(x, y *nodeHealth) int { return local(x) - local(y) }) {
		suffix := ""
		if local(n) == 0 {
			suffix = " (localhost)"
		}
		switch {
		case verbose:
			fmt.Fprintf(w, "  %s%s:\n", n.Name, suffix)
			for i, p := range n.Host.all() {
				p.print(w, []string{"Host", "Secondary Host"}[min(i, 1)])
			}
			for i, p := range n.HealthEndpoint.all() {
				p.print(w, []string{"Endpoint", "Secondary Endpoint"}[min(i, 1)])
			}
		case all || !n.healthy():
			var ips []string
			for _, p := range n.Host.all() {
				ips = append(ips, p.IP)
			}
			hosts, allHosts := n.Host.reachable()
			endpoints, allEndpoints := n.HealthEndpoint.reachable()
			fmt.Fprintf(w, "  %s%s\t%s\t%d/%d\t%d/%d\n", n.Name, suffix, strings.Join(ips, ","), hosts, allHosts, endpoints, allEndpoints)
		}
	}
}

func (p *pathStatus) print(w io.Writer, name string) {
	fmt.Fprintf(w, "    %s connectivity to %s:\n", name, p.IP)
	for _, probe := range []struct {
		name string
		c    *connectivityStatus
	}{{"ICMP to stack", p.ICMP}, {"HTTP to agent", p.HTTP}} {
		status := probe.c.Status
		if status == "" {
			status = "OK, RTT=" + time.Duration(probe.c.Latency).String()
		}
		fmt.Fprintf(w, "      %s:\t%s\t(Last probed: %s)\n", probe.name, status, probe.c.LastProbed)
	}
}
