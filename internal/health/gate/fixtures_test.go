package gate

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

// scenarios are clusters by name: what is declared, what is seen, and whether the gate holds for it.
var scenarios = map[string]struct {
	holds bool
	make  func() (*Spec, *Cluster)
}{}

// scenario registers a cluster, of which testdata/reports.txt has the report.
func scenario(name string, holds bool, make func() (*Spec, *Cluster)) struct{} {
	if scenarios[name].make != nil {
		panic("two scenarios have the name " + name)
	}
	s := scenarios[name]
	s.holds, s.make = holds, make
	scenarios[name] = s
	return struct{}{}
}

// fault registers a healthy cluster in which one thing is broken, with its consequences.
func fault(name string, breakIt func(*Cluster)) struct{} {
	return scenario(name, false, func() (*Spec, *Cluster) {
		spec := declared()
		seen := healthy(spec)
		breakIt(seen)
		return spec, seen
	})
}

// declared returns the spec of a cluster of three control planes and two workers.
func declared() *Spec {
	spec := &Spec{
		Target: health.Target{Cluster: "infra", Kubeconfig: "k"}, Talosconfig: "t",
		Cilium:  &Cilium{Version: "1.18.7", Mode: cluster.CiliumHelm, ClusterName: "infra", ClusterID: 1, Routing: "tunnel"},
		Network: &Network{PodCIDRs: cidrs("10.244.0.0/16"), ServiceCIDRs: cidrs("10.245.0.0/16")},
		Nodes: []Machine{
			{Name: "infra-cp-1", Role: cluster.ControlPlane, Address: ip("10.25.11.11")},
			{Name: "infra-cp-2", Role: cluster.ControlPlane, Address: ip("10.25.11.12")},
			{Name: "infra-cp-3", Role: cluster.ControlPlane, Address: ip("10.25.11.13")},
			{Name: "infra-worker-1", Role: cluster.Worker, Address: ip("10.25.11.21")},
			{Name: "infra-worker-2", Role: cluster.Worker, Address: ip("10.25.11.22")},
		},
	}
	spec.SetDefaults()
	return spec
}

// dualStack adds IPv6 to a declared cluster.
func dualStack(spec *Spec) *Spec {
	for i := range spec.Nodes {
		spec.Nodes[i].Address6 = ip(fmt.Sprintf("fd00:10:25:11::%d", i+1))
	}
	spec.Network.PodCIDRs = cidrs("10.244.0.0/16", "fd00:10:244::/56")
	spec.Network.ServiceCIDRs = cidrs("10.245.0.0/16", "fd00:10:245::/112")
	return spec
}

// healthyParts add what the checks judge to a healthy cluster. Each check's test file registers its part.
var healthyParts []func(*Spec, *Cluster)

// healthyPart registers a part.
func healthyPart(add func(spec *Spec, seen *Cluster)) struct{} {
	healthyParts = append(healthyParts, add)
	return struct{}{}
}

// healthy returns what is seen of a cluster that is as spec declares it.
func healthy(spec *Spec) *Cluster {
	seen := &Cluster{Talos: map[string]TalosNode{}}
	for _, node := range spec.Nodes {
		seen.Talos[node.Name] = TalosNode{Asked: true, Services: map[string]talosapi.Service{}}
	}
	for _, add := range healthyParts {
		add(spec, seen)
	}
	return seen
}

// podCIDRs are the ranges of the node with that index.
func podCIDRs(spec *Spec, i int) []netip.Prefix {
	if !spec.Nodes[i].Address6.IsValid() {
		return cidrs(fmt.Sprintf("10.244.%d.0/24", i))
	}
	return cidrs(fmt.Sprintf("10.244.%d.0/24", i), fmt.Sprintf("fd00:10:244:%d::/64", i))
}

var ip = netip.MustParseAddr

// cidrs are ranges.
func cidrs(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// only returns the declared cluster with its first n nodes.
func only(n int) *Spec {
	spec := declared()
	spec.Nodes = spec.Nodes[:n]
	return spec
}

func agentOf(seen *Cluster, node string) *kube.Pod {
	i := slices.IndexFunc(seen.Agents.Items, func(p kube.Pod) bool { return p.Node == node })
	return &seen.Agents.Items[i]
}

func onTalos(seen *Cluster, change func(*TalosNode), nodes ...string) {
	for _, node := range nodes {
		changed := seen.Talos[node]
		change(&changed)
		seen.Talos[node] = changed
	}
}

var controlPlaneNames = []string{"infra-cp-1", "infra-cp-2", "infra-cp-3"}

// hopeless reports whether a wait would end early.
func hopeless(results []health.Result) bool {
	return slices.ContainsFunc(results, func(r health.Result) bool { return r.Verdict == health.Failed && r.Hopeless })
}

func names(machines []Machine) []string {
	var names []string
	for _, machine := range machines {
		names = append(names, machine.Name)
	}
	return names
}
