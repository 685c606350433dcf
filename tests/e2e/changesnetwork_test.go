//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// entrance is a Gateway at the declared address, which Flux applies.
const entrance = `{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: entrance, namespace: default}, ` +
	`spec: {gatewayClassName: cilium, addresses: [{type: IPAddress, value: "${GATEWAY_IP}"}], ` +
	`listeners: [{name: http, port: 80, protocol: HTTP}]}}`

// otherRouters gives the Gateway another address, and the router another number. Load balancers are announced by BGP.
var otherRouters = run{rows: []row{{
	cell: "`network.loadBalancers.gateway`, `network.loadBalancers.bgp`", does: "nothing at first; Flux gives the Gateway its new address",
	edit: func(s settings) {
		s.balancers()["gateway"] = "10.25.11.125"
		s.balancers()["bgp"].(map[string]any)["peers"].([]any)[0].(map[string]any)["asn"] = 64999
	},
	arrived: func(l *lab) bool {
		return l.kubectl("get", "--namespace=default", "gateway/entrance", "--output=jsonpath={.status.addresses[*].value}") == "10.25.11.125" &&
			l.field("ciliumbgpclusterconfig/infra", "{.spec.bgpInstances[0].peers[0].peerASN}") == "64999"
	},
	stays: func(l *lab) string {
		return l.balancer("moves") + " " + l.balancer("stays") + " " +
			l.kubectl("get", "--namespace=default", "gateway/entrance", "--output=jsonpath={.metadata.uid}")
	},
}}}

// otherNetwork plugs the cards of all machines in elsewhere: into another VLAN, and that of one machine into another bridge. The lab's
// switches carry all VLANs, so that the nodes are reached as before.
var otherNetwork = run{
	rows: []row{{
		cell: "`nodePools[].bridge`, `nodePools[].vlan`, `proxmox.bridge`, `proxmox.vlan`", does: "drain, node by node; the network card",
		edit: func(s settings) {
			s.set("proxmox", map[string]any{"vlan": 11})
			delete(s.pool(2), "bridge")
		},
		arrived: func(l *lab) bool {
			for name, machine := range l.machines() {
				if card := l.card(machine); !strings.Contains(card, "bridge=vmbr0") || !strings.Contains(card, "tag=11") {
					l.t.Logf("%s has the card %s", name, card)
					return false
				}
			}
			return true
		},
	}},
	effect: effect{drained: []string{"infra-cp-1", "infra-cp-2", "infra-cp-3", "infra-worker-1", "infra-spare-1"}},
}

// card returns the first network card of a VM, in the words of Proxmox VE.
func (l *lab) card(of machine) string {
	l.t.Helper()
	var config struct{ Net0 string }
	l.proxmox("GET", fmt.Sprintf("nodes/%s/qemu/%d/config?current=1", of.Host, of.ID), &config)
	return config.Net0
}

// otherCard gives a machine another network card. In the lab, unlike with a real Talos, the node keeps its address until its VM reboots, so
// that nobody has to reboot it while the run waits.
var otherCard = run{
	rows: []row{{
		cell: "`nodePools[].nodes[].mac`", does: "drain; the running VM gets another network card",
		edit: func(s settings) { s.node("infra-worker-9")["mac"] = "BC:24:11:00:01:39" },
		arrived: func(l *lab) bool {
			return strings.Contains(l.card(l.machines()["infra-worker-9"]), "BC:24:11:00:01:39") && l.isReady("infra-worker-9")
		},
	}},
	effect: effect{drained: []string{"infra-worker-9"}},
}

// otherGateway is a router that the lab does not have. The machines reach each other and this computer without one.
var otherGateway = row{
	cell: "`network.gateway`", does: "nothing: Talos takes the new default route over at once",
	edit: func(s settings) { s.set("network", map[string]any{"gateway": "10.25.11.254"}) },
	arrived: func(l *lab) bool {
		return strings.Contains(l.onNode(addresses["infra-cp-1"], "get", "routestatus", "--output=yaml"), "gateway: 10.25.11.254")
	},
}

// otherMeshAddress is about a cluster with peers.
var otherMeshAddress = row{
	cell: "`network.loadBalancers.mesh`", does: "nothing on pods: the peers lose this cluster until `up` has run for them, too",
	edit: func(s settings) { s.balancers()["mesh"] = "10.25.12.101" },
}

// furtherPeer and noPeer are about the agents: they look into the Secret of the peers, and run on.
var (
	furtherPeer = row{
		cell: "`mesh.peers`", does: "rollout of clustermesh-apiserver, which comes with the first peer and goes with the last",
		edit: func(s settings) {
			mesh := s["slipway:mesh"].(map[string]any)
			mesh["peers"] = append(mesh["peers"].([]any), "edge")
		},
	}
	noPeer = row{
		cell: "`mesh.peers`", does: "rollout of clustermesh-apiserver, which comes with the first peer and goes with the last",
		edit: func(s settings) { s.set("mesh", map[string]any{"peers": []any{}}) },
	}
)

// The pods that a change of the mesh may touch.
const (
	meshServers = "k8s-app=clustermesh-apiserver"
	meshAgents  = "k8s-app=cilium"
)

// meshPods are the UIDs of the pods of a cluster.
func (l *lab) meshPods(stack, selector string) string {
	l.t.Helper()
	return l.in("kubectl", "--context=admin@"+stack, "get", "pods", "--namespace=kube-system", "--selector="+selector,
		"--output=jsonpath={.items[*].metadata.uid}")
}

// changesPeers makes a change of the peers of a cluster: its mesh API server is another one, or gone, and its agents run on. Peers are
// those that it has afterwards, in JSON.
func (l *lab) changesPeers(stack string, change row, peers string) {
	l.t.Helper()
	servers, agents := l.meshPods(stack, meshServers), l.meshPods(stack, meshAgents)
	require.NotEmpty(l.t, servers)
	require.NotEmpty(l.t, agents)
	editStackFile(l.t, filepath.Join(l.project, "Pulumi."+stack+".yaml"), change.edit)
	l.copied(stack, "slipway:mesh.peers", peers)
	l.pulumi("up", "--yes", "--skip-preview", "--stack", stack)
	if now := l.meshPods(stack, meshServers); peers == "[]" {
		assert.Empty(l.t, now, "%s has no peers", stack)
	} else {
		assert.NotEqual(l.t, servers, now, "what reads from the peers of %s was replaced", stack)
	}
	assert.Equal(l.t, agents, l.meshPods(stack, meshAgents), "agents of %s", stack)
}

// copied waits until the lab has copied a stack file of the checkout, in which a key has that value.
func (l *lab) copied(stack, key, value string) {
	l.t.Helper()
	l.eventually("the lab has copied the stack file", func() bool {
		out, err := l.try("pulumi", "config", "get", "--stack", stack, "--path", key)
		return err == nil && strings.TrimSpace(out) == value
	})
}

// changesMeshAddress gives apps another address for its peers. infra loses it until its own run, which replaces what reads from there.
func (l *lab) changesMeshAddress() {
	l.t.Helper()
	before := map[string]string{}
	for _, stack := range []string{"infra", "apps"} {
		for _, of := range []string{meshServers, meshAgents} {
			before[stack+" "+of] = l.meshPods(stack, of)
			require.NotEmpty(l.t, before[stack+" "+of], "%s %s", stack, of)
		}
	}
	editStackFile(l.t, filepath.Join(l.project, "Pulumi.apps.yaml"), otherMeshAddress.edit) // which the program of infra reads
	l.copied("apps", "slipway:network.loadBalancers.mesh", "10.25.12.101")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "apps")
	for _, of := range []string{meshServers, meshAgents} {
		assert.Equal(l.t, before["apps "+of], l.meshPods("apps", of), "pods of apps: %s", of)
	}
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	assert.NotEqual(l.t, before["infra "+meshServers], l.meshPods("infra", meshServers), "what reads from apps was replaced")
	assert.Equal(l.t, before["infra "+meshAgents], l.meshPods("infra", meshAgents), "agents of infra")
	require.Equal(l.t, "connected", l.sees("infra", "apps"))
	require.Equal(l.t, "connected", l.sees("apps", "infra"))
}

// TestLifecycle_CiliumGoesToTheNextMinorRelease upgrades Cilium in a cluster without the Gateway API: 1.19 does not go with the CRDs that
// the lab serves.
func TestLifecycle_CiliumGoesToTheNextMinorRelease(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "cilium", func(s settings) {
		s.withoutProviders()
		s.set("gitops", map[string]any{"enabled": false})
		s.set("cilium", map[string]any{"version": "1.19.0", "gatewayAPI": false})
	})
	comesUp(l)
	load := startLoad(l)
	load.during(l, []change{{"Cilium", newerCilium.make(load)}})
}

var newerCilium = run{
	rows: []row{{
		cell: "`cilium.version`", does: "rollout of agents, two nodes at a time, of the operator, and of Envoy and Hubble Relay if the chart",
		edit: func(s settings) { s.set("cilium", map[string]any{"version": "1.20.2"}) },
		arrived: func(l *lab) bool {
			return strings.Contains(l.field("daemonset/cilium", "{.spec.template.spec.containers[0].image}"), ":v1.20.2")
		},
	}},
	effect: effect{replaced: []string{agents, operator, `^kube-system/cilium-envoy-`, `^kube-system/hubble-relay-`}},
}
