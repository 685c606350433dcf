package health

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares text with the file of that name in testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), text)
}

// declared is a cluster of three control planes and two workers.
func declared() *GateSpec {
	spec := &GateSpec{
		Cluster: "infra", Kubeconfig: "k", Talosconfig: "t",
		Cilium:  &Cilium{Version: "1.18.7", Mode: CiliumHelm, ClusterName: "infra", ClusterID: 1, Routing: "tunnel"},
		Network: &Network{PodCIDRs: []string{"10.244.0.0/16"}, ServiceCIDRs: []string{"10.245.0.0/16"}},
		Nodes: []Node{
			{Name: "infra-cp-1", Role: ControlPlane, Address: "10.25.11.11"}, {Name: "infra-cp-2", Role: ControlPlane, Address: "10.25.11.12"},
			{Name: "infra-cp-3", Role: ControlPlane, Address: "10.25.11.13"},
			{Name: "infra-worker-1", Role: Worker, Address: "10.25.11.21"}, {Name: "infra-worker-2", Role: Worker, Address: "10.25.11.22"},
		},
	}
	spec.SetDefaults()
	return spec
}

// dualStack makes the declared cluster one of both families.
func dualStack(spec *GateSpec) *GateSpec {
	for i := range spec.Nodes {
		spec.Nodes[i].Address6 = fmt.Sprintf("fd00:10:25:11::%d", i+1)
	}
	spec.Network.PodCIDRs = append(spec.Network.PodCIDRs, "fd00:10:244::/56")
	spec.Network.ServiceCIDRs = append(spec.Network.ServiceCIDRs, "fd00:10:245::/112")
	return spec
}

var running = Service{State: "Running", Known: true, Healthy: true}

// rolledOut is a workload of Cilium's release, as far as it goes.
func rolledOut(kind, name string, pods int) Workload {
	return Workload{Kind: kind, Namespace: "kube-system", Name: name, Release: "cilium", Observed: true, Desired: pods, Updated: pods}
}

// healthy is what is seen of a cluster that is as spec declares it.
func healthy(spec *GateSpec) *Cluster {
	seen := &Cluster{
		API: APIServer{Asked: true, Ready: true}, Talos: map[string]TalosNode{},
		CiliumHealth: map[string]CiliumHealth{}, CiliumStatus: map[string]CiliumStatus{},
		Nodes: Seen[KubeNode]{Synced: true}, Agents: Seen[Pod]{Synced: true}, Operators: Seen[Pod]{Synced: true}, Ranges: Seen[Ranges]{Synced: true},
		Services:  Seen[Ranges]{Synced: true, Items: []Ranges{{"kubernetes", spec.Network.ServiceCIDRs}}},
		AgentSets: Seen[Workload]{Synced: true, Items: []Workload{rolledOut("DaemonSet", "cilium", len(spec.Nodes))}},
		Operator:  Seen[Workload]{Synced: true, Items: []Workload{rolledOut("Deployment", "cilium-operator", 2)}},
		Config: Seen[Settings]{Synced: true, Items: []Settings{{"cilium-config", map[string]string{
			"cluster-name": "infra", "cluster-id": "1", "routing-mode": "tunnel", "enable-ipv4": "true",
			"enable-ipv6": strconv.FormatBool(len(spec.Network.PodCIDRs) > 1), "ipv4-native-routing-cidr": "10.244.0.0/16",
		}}}},
	}
	for i, node := range spec.Nodes {
		cidrs := []string{fmt.Sprintf("10.244.%d.0/24", i)}
		if node.Address6 != "" {
			cidrs = append(cidrs, fmt.Sprintf("fd00:10:244:%d::/64", i))
		}
		seen.Nodes.Items = append(seen.Nodes.Items, KubeNode{Name: node.Name, Ready: "True", Addresses: node.addresses(), PodCIDRs: cidrs})
		seen.Ranges.Items = append(seen.Ranges.Items, Ranges{node.Name, cidrs})
		seen.Agents.Items = append(seen.Agents.Items, agentOn(node.Name))
		report := CiliumHealth{Pod: "cilium-" + node.Name, Asked: true, Peers: map[string]CiliumPeer{}}
		for _, peer := range spec.Nodes {
			report.Peers[peer.Name] = CiliumPeer{}
		}
		seen.CiliumHealth[node.Name] = report
		seen.CiliumStatus[node.Name] = CiliumStatus{Pod: "cilium-" + node.Name, Asked: true, Pools: cidrs}
		talos := TalosNode{Asked: true, Services: map[string]Service{"apid": running, "machined": running, "kubelet": running, "ext-qemu-guest-agent": {State: "Running"}}}
		if node.Role == ControlPlane {
			talos.Services["etcd"], talos.Services["trustd"] = running, running
			talos.Etcd = Etcd{Asked: true, Leader: 1}
			for i, member := range spec.controlPlanes() {
				talos.Etcd.Members = append(talos.Etcd.Members, EtcdMember{Name: member.Name, ID: uint64(i + 1), Hosts: []string{member.Address}})
			}
			talos.Given = &TalosGiven{PodCIDRs: spec.Network.PodCIDRs, ServiceCIDRs: spec.Network.ServiceCIDRs}
		}
		seen.Talos[node.Name] = talos
	}
	for _, name := range []string{"cilium-operator-a", "cilium-operator-b"} {
		seen.Operators.Items = append(seen.Operators.Items, Pod{Namespace: "kube-system", Name: name, Node: spec.Nodes[0].Name, Phase: "Running", Ready: true})
	}
	return seen
}

func agentOn(node string) Pod {
	return Pod{
		Namespace: "kube-system", Name: "cilium-" + node, Node: node, Phase: "Running", Ready: true,
		Containers: []Container{
			{Name: "config", Image: "quay.io/cilium/cilium:v1.18.7@sha256:aa", Init: true, Ready: true},
			{Name: "cilium-agent", Image: "quay.io/cilium/cilium:v1.18.7@sha256:aa", Ready: true},
		},
	}
}

// only is the declared cluster cut down to its first n nodes.
func only(n int) *GateSpec {
	spec := declared()
	spec.Nodes = spec.Nodes[:n]
	return spec
}
