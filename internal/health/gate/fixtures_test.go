package gate

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/slipway-platform/slipway/cluster"
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

// declared is a cluster of three control planes and two workers.
func declared() *Spec {
	spec := &Spec{
		Target: health.Target{Cluster: "infra", Kubeconfig: "k"}, Talosconfig: "t",
		Cilium:  &Cilium{Version: "1.18.7", Mode: CiliumHelm, ClusterName: "infra", ClusterID: 1, Routing: "tunnel"},
		Network: &Network{PodCIDRs: []string{"10.244.0.0/16"}, ServiceCIDRs: []string{"10.245.0.0/16"}},
		Nodes: []Machine{
			{Name: "infra-cp-1", Role: cluster.ControlPlane, Address: "10.25.11.11"}, {Name: "infra-cp-2", Role: cluster.ControlPlane, Address: "10.25.11.12"},
			{Name: "infra-cp-3", Role: cluster.ControlPlane, Address: "10.25.11.13"},
			{Name: "infra-worker-1", Role: cluster.Worker, Address: "10.25.11.21"}, {Name: "infra-worker-2", Role: cluster.Worker, Address: "10.25.11.22"},
		},
	}
	spec.SetDefaults()
	return spec
}

// dualStack makes the declared cluster one of both families.
func dualStack(spec *Spec) *Spec {
	for i := range spec.Nodes {
		spec.Nodes[i].Address6 = fmt.Sprintf("fd00:10:25:11::%d", i+1)
	}
	spec.Network.PodCIDRs = append(spec.Network.PodCIDRs, "fd00:10:244::/56")
	spec.Network.ServiceCIDRs = append(spec.Network.ServiceCIDRs, "fd00:10:245::/112")
	return spec
}

var running = Service{State: "Running", Known: true, Healthy: true}

// rolledOut is a workload of Cilium's release, as far as it goes.
func rolledOut(kind, name string, pods int) kube.Workload {
	return kube.Workload{Kind: kind, Namespace: "kube-system", Name: name, Release: "cilium", Observed: true, Desired: pods, Updated: pods}
}

// healthy is what is seen of a cluster that is as spec declares it.
func healthy(spec *Spec) *Cluster {
	seen := &Cluster{
		API: APIServer{Asked: true, Ready: true}, Talos: map[string]TalosNode{},
		CiliumHealth: map[string]CiliumHealth{}, CiliumStatus: map[string]CiliumStatus{},
		Nodes: health.Seen[Node]{Synced: true}, Agents: health.Seen[kube.Pod]{Synced: true}, Operators: health.Seen[kube.Pod]{Synced: true}, Ranges: health.Seen[Ranges]{Synced: true},
		Services:  health.Seen[Ranges]{Synced: true, Items: []Ranges{{"kubernetes", spec.Network.ServiceCIDRs}}},
		AgentSets: health.Seen[kube.Workload]{Synced: true, Items: []kube.Workload{rolledOut("DaemonSet", "cilium", len(spec.Nodes))}},
		Operator:  health.Seen[kube.Workload]{Synced: true, Items: []kube.Workload{rolledOut("Deployment", "cilium-operator", 2)}},
		Config: health.Seen[Settings]{Synced: true, Items: []Settings{{"cilium-config", map[string]string{
			"cluster-name": "infra", "cluster-id": "1", "routing-mode": "tunnel", "enable-ipv4": "true",
			"enable-ipv6": strconv.FormatBool(len(spec.Network.PodCIDRs) > 1), "ipv4-native-routing-cidr": "10.244.0.0/16",
		}}}},
	}
	for i, node := range spec.Nodes {
		cidrs := []string{fmt.Sprintf("10.244.%d.0/24", i)}
		if node.Address6 != "" {
			cidrs = append(cidrs, fmt.Sprintf("fd00:10:244:%d::/64", i))
		}
		seen.Nodes.Items = append(seen.Nodes.Items, Node{Name: node.Name, Ready: "True", Addresses: node.addresses(), PodCIDRs: cidrs})
		seen.Ranges.Items = append(seen.Ranges.Items, Ranges{node.Name, cidrs})
		seen.Agents.Items = append(seen.Agents.Items, agentOn(node.Name))
		report := CiliumHealth{Asked: true, Peers: map[string]CiliumPeer{}}
		for _, peer := range spec.Nodes {
			report.Peers[peer.Name] = CiliumPeer{}
		}
		seen.CiliumHealth[node.Name] = report
		seen.CiliumStatus[node.Name] = CiliumStatus{Asked: true, Pools: cidrs}
		talos := TalosNode{Asked: true, Services: map[string]Service{"apid": running, "machined": running, "kubelet": running, "ext-qemu-guest-agent": {State: "Running"}}}
		if node.Role == cluster.ControlPlane {
			talos.Services["etcd"], talos.Services["trustd"] = running, running
			talos.Etcd = Etcd{Asked: true, Leader: 1}
			for i, member := range spec.controlPlanes() {
				talos.Etcd.Members = append(talos.Etcd.Members, EtcdMember{Name: member.Name, ID: uint64(i + 1), Hosts: []string{member.Address}})
			}
			talos.Ranges = &ControllerRanges{PodCIDRs: spec.Network.PodCIDRs, ServiceCIDRs: spec.Network.ServiceCIDRs}
		}
		seen.Talos[node.Name] = talos
	}
	for _, name := range []string{"cilium-operator-a", "cilium-operator-b"} {
		seen.Operators.Items = append(seen.Operators.Items, kube.Pod{Namespace: "kube-system", Name: name, Node: spec.Nodes[0].Name, Phase: "Running", Ready: true})
	}
	return seen
}

func agentOn(node string) kube.Pod {
	return kube.Pod{
		Namespace: "kube-system", Name: "cilium-" + node, Node: node, Phase: "Running", Ready: true,
		Containers: []kube.Container{
			{Name: "config", Image: "quay.io/cilium/cilium:v1.18.7@sha256:aa", Init: true, Ready: true},
			{Name: "cilium-agent", Image: "quay.io/cilium/cilium:v1.18.7@sha256:aa", Ready: true},
		},
	}
}

// only is the declared cluster cut down to its first n nodes.
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
