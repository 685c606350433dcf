package cilium

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// statusFlags are the flags that change the output of the status commands.
// --probe changes nothing: since Cilium 1.17 it returns the results of the last round, too.
type statusFlags struct{ json, short, verbose bool }

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

// fullName is Cilium's name of a node: with its cluster, unless that has the default name.
func fullName(cluster, node string) string {
	if cluster == "default" {
		return node
	}
	return cluster + "/" + node
}

// healthText prints the report as cilium-health does.
func (a *agent) healthText(w io.Writer, f statusFlags) (int, error) {
	t := tabwriter.NewWriter(w, 2, 0, 3, ' ', 0)
	printHealth(t, a.health(), true, f.verbose)
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
		if probe.c == nil {
			continue // not probed yet
		}
		status := probe.c.Status
		if status == "" {
			status = "OK, RTT=" + time.Duration(probe.c.Latency).String()
		}
		fmt.Fprintf(w, "      %s:\t%s\t(Last probed: %s)\n", probe.name, status, probe.c.LastProbed)
	}
}
