package health

import (
	"flag"
	"os"
	"path/filepath"
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
	spec := &GateSpec{Cluster: "infra", Kubeconfig: "k", Talosconfig: "t", Cilium: &Cilium{Version: "1.18.7"}, Nodes: []Node{
		{"infra-cp-1", ControlPlane, "10.25.11.11"}, {"infra-cp-2", ControlPlane, "10.25.11.12"}, {"infra-cp-3", ControlPlane, "10.25.11.13"},
		{"infra-worker-1", Worker, "10.25.11.21"}, {"infra-worker-2", Worker, "10.25.11.22"},
	}}
	spec.SetDefaults()
	return spec
}

// healthy is what is seen of a cluster that is as spec declares it.
func healthy(spec *GateSpec) *Cluster {
	seen := &Cluster{
		API: APIServer{Asked: true, Ready: true}, CiliumHealth: map[string]CiliumHealth{}, Talos: map[string]TalosNode{},
		Nodes: Seen[KubeNode]{Synced: true}, Agents: Seen[Pod]{Synced: true}, Operators: Seen[Pod]{Synced: true},
		AgentSets: Seen[Workload]{Synced: true, Items: []Workload{{"DaemonSet", "kube-system", "cilium", true, len(spec.Nodes), len(spec.Nodes)}}},
		Operator:  Seen[Workload]{Synced: true, Items: []Workload{{"Deployment", "kube-system", "cilium-operator", true, 2, 2}}},
	}
	running := Service{State: "Running", Known: true, Healthy: true}
	for _, node := range spec.Nodes {
		seen.Nodes.Items = append(seen.Nodes.Items, KubeNode{Name: node.Name, Ready: "True"})
		seen.Agents.Items = append(seen.Agents.Items, agentOn(node.Name))
		report := CiliumHealth{Pod: "cilium-" + node.Name, Asked: true, Peers: map[string]CiliumPeer{}}
		for _, peer := range spec.Nodes {
			report.Peers[peer.Name] = CiliumPeer{}
		}
		seen.CiliumHealth[node.Name] = report
		talos := TalosNode{Asked: true, Services: map[string]Service{"apid": running, "kubelet": running}}
		if node.Role == ControlPlane {
			talos.Services["etcd"] = running
			talos.EtcdAsked = true
			for _, member := range spec.controlPlanes() {
				talos.Members = append(talos.Members, EtcdMember{Name: member.Name})
			}
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
