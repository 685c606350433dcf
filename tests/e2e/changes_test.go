//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLifecycle_EachRowOfTheTableDoesWhatItSays makes changes of the table in docs/changes.md in a cluster under load, and compares what
// each of them touches with its row.
func TestLifecycle_EachRowOfTheTableDoesWhatItSays(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "changes", changeable)
	l.changeableTree()
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	load := startLoad(l)
	for _, object := range touched {
		l.apply("infra", object)
	}
	load.during(l, []change{
		{"what touches nothing", nothingTouched.make(load)},
		{"another Flux and another operator of it", newerFlux.make(load)},
		{"another source of Flux with the same manifests", anotherSource.make(load)},
		{"settings of manifests", anotherSetting.make(load)},
		{"a smaller pool of load balancers", smallerPool.make(load)},
		{"another announcement, of which a warning is accepted", anotherAnnouncement(load)},
		{"another address of the Gateway, and another router", otherRouters.make(load)},
		{"values of charts", chartValues.make(load)},
		{"a provider of secrets, and Proxmox VE without a check of its certificate", providerAdded.make(load)},
		{"cert-manager and the provider of secrets removed", servicesRemoved.make(load)},
		{"a check that does not hold, for which a node waits", waitsForCheck},
		{"a taint of a worker that runs", taintByHand(load)},
		{"what is refused", refused},
		{"disks", moreDisk.make(load)},
		{"a datastore that is full at first", fullDatastore(load)},
		{"another datastore", otherDatastore.make(load)},
		{"another VLAN and another bridge", otherNetwork.make(load)},
		{"a node more in a pool with a count", oneMore.make(load)},
		{"a node less, and a node with another name", oneLess.make(load)},
		{"another SCSI controller", otherController.make(load)},
		{"another card of a worker", otherCard.make(load)},
		{"no Flux any more", noGitOps.make(load)},
	})
}

// changeable is a cluster of five machines, of which one is in a pool with a count.
func changeable(s settings) {
	s.withoutProviders()
	skip := map[string]any{"skip": true}
	s.set("cilium", map[string]any{"repository": "https://charts.home.arpa/mirrors/cilium"})
	s.set("crds", map[string]any{"victoriaMetrics": skip, "cloudnativePG": skip, "rook": skip, "cephCSI": skip})
	s.set("gitops", map[string]any{
		"timeout": "4m", "settings": map[string]any{"DOMAIN": "infra.home.arpa", "GREETING": "hello"},
		"flux": map[string]any{"version": "2.8.8"}, "operator": map[string]any{"version": "0.58.0"},
	})
	delete(s.balancers(), "mesh")
	s.pool(1)["nodes"] = s.pool(1)["nodes"].([]any)[:1]
	s["slipway:nodePools"] = append(s["slipway:nodePools"].([]any), map[string]any{
		"name": "spare", "role": "worker", "cores": 8, "memory": "16GiB", "disk": "100GiB", "firstAddress": "10.25.11.31", "count": 1,
		"bridge": "vmbr1", // the lab's hosts have the bridges that stack files name when it starts
	})
	s.manyDatastores()
}

// touched are objects of which a change could make others: an object of a CRD, a Service with any address, and one with its own.
var touched = []map[string]any{
	{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor", "metadata": map[string]any{"namespace": "default", "name": "kept"},
		"spec": map[string]any{"selector": map[string]any{}, "podMetricsEndpoints": []any{map[string]any{"port": "metrics"}}},
	},
	balanced("moves", nil), balanced("stays", map[string]any{"lbipam.cilium.io/ips": "10.25.11.130"}),
}

func balanced(name string, annotations map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"namespace": "default", "name": name, "annotations": annotations},
		"spec": map[string]any{
			"type": "LoadBalancer", "selector": map[string]any{"app": "steady"}, "ports": []any{map[string]any{"port": 80}},
		},
	}
}

// nothingTouched are the rows that say "nothing", in one run.
var nothingTouched = run{rows: []row{
	{
		cell: "`nodePools[].labels`", does: "nothing",
		edit: func(s settings) { s.pool(1)["labels"] = map[string]any{"example.com/rack": "7"} },
		arrived: func(l *lab) bool {
			return l.field("node/infra-worker-1", `{.metadata.labels.example\.com/rack}`) == "7"
		},
	},
	{
		cell: "`nodePools[].name`", does: "nothing, if all its nodes have a written name",
		edit: func(s settings) { s.pool(0)["name"], s.pool(1)["name"] = "servers", "compute" },
	},
	{
		cell: "`proxmox.tags`, `nodePools[].tags`", does: "nothing",
		edit: func(s settings) { s.set("proxmox", map[string]any{"tags": []any{"team-a"}}) },
		arrived: func(l *lab) bool {
			var config struct{ Tags string }
			l.proxmox("GET", "nodes/"+l.machines()["infra-cp-1"].Host+"/qemu/1111/config", &config)
			return strings.Contains(config.Tags, "team-a")
		},
	},
	{
		cell: "`proxmox.cluster`", does: "nothing on running pods: each Node gets another region",
		edit: func(s settings) { s.set("proxmox", map[string]any{"cluster": "rack-7"}) },
		arrived: func(l *lab) bool {
			return l.field("node/infra-worker-1", `{.metadata.labels.topology\.kubernetes\.io/region}`) == "rack-7"
		},
	},
	{
		cell: "`cilium.repository`", does: "nothing, if it has the same chart",
		edit: func(s settings) { s.set("cilium", map[string]any{"repository": "https://helm.cilium.io/"}) },
		arrived: func(l *lab) bool {
			resources, _ := l.state()
			i := slices.IndexFunc(resources, func(r map[string]any) bool { return strings.HasSuffix(r["urn"].(string), "::cilium-release") })
			return strings.Contains(fmt.Sprint(resources[i]["outputs"]), "https://helm.cilium.io/")
		},
	},
	{
		cell: "`gitops.interval`, `gitops.timeout`", does: "nothing",
		edit:    func(s settings) { s.set("gitops", map[string]any{"interval": "2m"}) },
		arrived: func(l *lab) bool { return strings.HasPrefix(l.fluxField("GitRepository", "{.spec.interval}"), "2m") },
	},
	{
		cell: "`talos.factory`, `talos.installDisk`", does: "nothing",
		edit: func(s settings) {
			s.set("talos", map[string]any{"installDisk": "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi0"})
		},
		arrived: func(l *lab) bool {
			return strings.Contains(l.onNode(addresses["infra-cp-1"], "get", "machineconfig", "--output=yaml"), "drive-scsi0")
		},
	},
	{
		cell: "`workers.join`", does: "nothing",
		edit: func(s settings) { s.set("workers", map[string]any{"join": "afterGate"}) },
		arrived: func(l *lab) bool {
			return slices.ContainsFunc(urns(l.t, l, "infra"), func(urn string) bool { return strings.HasSuffix(urn, "::workers-probe") })
		},
	},
	{
		cell: "`readiness`, `lifecycle`", does: "nothing",
		edit: func(s settings) {
			s.set("readiness", map[string]any{"timeout": "8m"})
			s.set("lifecycle", map[string]any{"drainTimeout": "5m"})
		},
	},
	{
		cell: "`lifecycle.certificateAuthorities.leaveNamespaces`", does: "nothing",
		edit: func(s settings) {
			s.set("lifecycle", map[string]any{"certificateAuthorities": map[string]any{"leaveNamespaces": []any{"default"}}})
		},
	},
	{
		cell: "`checks`", does: "nothing",
		edit: func(s settings) {
			s["slipway:checks"] = []any{map[string]any{
				"name": "the steady pods run", "expression": "object.status.readyReplicas >= 2",
				"objects": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "steady"},
			}}
		},
		arrived: func(l *lab) bool { return strings.Contains(l.output("checksReport"), "the steady pods run") },
	},
	{
		cell: "`crds`: a version", does: "nothing; objects stay",
		edit: func(s settings) { // the lab serves one release
			s.set("crds", map[string]any{"prometheusOperator": map[string]any{
				"version": "v0.85.1",
				"url":     "https://github.com/prometheus-operator/prometheus-operator/releases/download/v0.85.0/stripped-down-crds.yaml",
			}})
		},
		stays: func(l *lab) string {
			return l.field("crd/podmonitors.monitoring.coreos.com", "{.metadata.uid}") + " " +
				l.kubectl("get", "--namespace=default", "podmonitor/kept", "--output=jsonpath={.metadata.uid}")
		},
	},
	{
		cell: "`network.nameservers`, `network.ntp`", does: "nothing: Talos takes the new servers over at once",
		edit: func(s settings) {
			s.set("network", map[string]any{"nameservers": []any{"10.25.11.1", "9.9.9.9"}, "ntp": []any{"10.25.11.1"}})
		},
		arrived: func(l *lab) bool {
			return strings.Contains(l.onNode(addresses["infra-worker-1"], "get", "machineconfig", "--output=yaml"), "9.9.9.9")
		},
	},
	otherGateway,
	{
		cell: "`kubernetes.allowSchedulingOnControlPlanes`", does: "nothing: the taint is added or removed, and running pods stay",
		edit:    func(s settings) { s.set("kubernetes", map[string]any{"allowSchedulingOnControlPlanes": true}) },
		arrived: func(l *lab) bool { return l.field("node/infra-cp-1", "{.spec.taints[*].key}") == "" },
	},
	{
		cell: "`gitops.deletionPolicy`", does: "nothing",
		edit: func(s settings) { s.set("gitops", map[string]any{"deletionPolicy": "delete"}) },
	},
}}

// anotherSource has another URL, another branch and another folder, and is public.
var anotherSource = run{rows: []row{publicSource, {
	cell: "`gitops.url`, `gitops.branch`, `gitops.path`, `gitops.oci`, `gitops.bucket`", does: "nothing in the workloads",
	before: func(l *lab) { // the lab's Git host has the branches of the stack files, and keeps others
		const bare = "git/git.home.arpa"
		runGit(l.t, "-C", l.home()+"/"+bare, "update-ref", "refs/heads/moved", "refs/heads/main")
	},
	edit: func(s settings) {
		s.set("gitops", map[string]any{
			"url": "https://git.home.arpa/public/platform/slipway.git", "branch": "moved", "path": "kubernetes/clusters/moved",
			"deletionPolicy": "orphan",
		})
	},
	arrived: func(l *lab) bool {
		return l.fluxField("GitRepository", "{.spec.ref.name}") == "refs/heads/moved" &&
			strings.HasPrefix(l.fluxField("Kustomization", "{.status.lastAppliedRevision}"), "refs/heads/moved@")
	},
	stays: func(l *lab) string {
		return l.field("ciliumloadbalancerippool/infra", "{.metadata.uid}") + l.greeting("{.metadata.uid}")
	},
}}}

// publicSource needs no password any more. TestGitOps_AccessAndKeysAreTriedWhenTheyChange tries other kinds of access.
var publicSource = row{
	cell: "`gitops.public`, `gitops.username`, `gitops.ca`, `gitops.knownHosts`, `gitops.githubApp`", does: "nothing: `up` waits",
	edit: func(s settings) {
		s.set("gitops", map[string]any{"public": true})
		delete(s, "slipway:gitPassword")
	},
	arrived: func(l *lab) bool { return l.fluxField("GitRepository", "{.spec.secretRef.name}") == "" },
}

var anotherSetting = run{rows: []row{{
	cell: "`gitops.settings`", does: "nothing at first; Flux substitutes the new values at once",
	edit: func(s settings) {
		s["slipway:gitops"].(map[string]any)["settings"].(map[string]any)["GREETING"] = "welcome"
	},
	arrived: func(l *lab) bool { return l.greeting("{.data.words}") == "welcome" },
	stays:   func(l *lab) string { return l.greeting("{.metadata.uid}") },
}}}

// greeting returns a field of the object that Flux has applied with a setting.
func (l *lab) greeting(path string) string {
	l.t.Helper()
	return l.kubectl("get", "--namespace=flux-system", "configmap/greeting", "--output=jsonpath="+path)
}

// Pods of Cilium: those that a change of its configuration replaces, and those that it may.
const (
	agents   = `^kube-system/cilium-[a-z0-9]{5}$`
	operator = `^kube-system/cilium-operator-`
)

// smallerPool takes the first addresses away, and so makes the agents' rate of requests another one.
var smallerPool = run{
	rows: []row{{
		cell: "`network.loadBalancers.start`, `network.loadBalancers.stop`", does: "nothing for Services whose address stays in the pool",
		before: func(l *lab) {
			l.eventually("the Services have addresses", func() bool { return l.balancer("moves") != "" && l.balancer("stays") != "" })
		},
		edit:    func(s settings) { s.balancers()["start"] = "10.25.11.110" },
		arrived: func(l *lab) bool { return l.balancer("moves") == "10.25.11.110" },
		stays:   func(l *lab) string { return l.balancer("stays") },
	}},
	effect: effect{replaced: []string{agents, operator}},
}

func (l *lab) balancer(service string) string {
	l.t.Helper()
	return l.kubectl("get", "--namespace=default", "service/"+service, "--output=jsonpath={.status.loadBalancer.ingress[*].ip}")
}

// balancers returns the settings of load balancers.
func (s settings) balancers() map[string]any {
	return s["slipway:network"].(map[string]any)["loadBalancers"].(map[string]any)
}

// anotherAnnouncement announces by BGP to a router that one hop does not reach, of which `up` warns until that is accepted.
func anotherAnnouncement(load *load) func(*lab) {
	const warned = "network.loadBalancers.bgp.peers[0].address"
	announced := run{
		rows: []row{{
			cell: "`network.loadBalancers.announce`", does: "rollout of agents",
			edit: func(s settings) {
				s.balancers()["announce"] = "bgp"
				s.balancers()["bgp"] = map[string]any{"asn": 64512, "peers": []any{map[string]any{"address": "10.99.0.1", "asn": 64513}}}
			},
			arrived: func(l *lab) bool {
				return l.kubectl("get", "ciliuml2announcementpolicies", "--output=name") == "" &&
					l.kubectl("get", "ciliumbgpclusterconfigs", "--output=name") != ""
			},
			stays: func(l *lab) string { return l.balancer("moves") + " " + l.balancer("stays") },
		}},
		says: `^warning: ` + regexp.QuoteMeta(warned) + `: `, effect: effect{replaced: []string{agents, operator}},
	}
	accepted := run{rows: []row{{
		cell: "`accepted`", does: "nothing",
		edit: func(s settings) {
			s["slipway:accepted"] = []any{map[string]any{"path": warned, "reason": "the tree has ebgpMultihop"}}
		},
	}}}
	return func(l *lab) {
		announced.make(load)(l)
		accepted.make(load)(l) // which fails on a warning
	}
}

var chartValues = run{
	rows: []row{
		{
			cell: "`cilium.values`, `cilium.hubble`, `cilium.bandwidthManager`", does: "rollout of agents, two nodes at a time, and of the operator",
			edit: func(s settings) {
				s.set("cilium", map[string]any{"values": map[string]any{"prometheus": map[string]any{"enabled": true}}})
			},
			arrived: func(l *lab) bool {
				return l.field("configmap/cilium-config", "{.data.prometheus-serve-addr}") == ":9962" &&
					l.field("daemonset/cilium", "{.spec.updateStrategy.rollingUpdate.maxUnavailable}") == "2"
			},
		},
		{
			cell: "`cilium.routing`, `cilium.encryption`, `cilium.masquerade`", does: "the same rollout",
			edit:    func(s settings) { s.set("cilium", map[string]any{"routing": "native"}) },
			arrived: func(l *lab) bool { return l.field("configmap/cilium-config", "{.data.routing-mode}") == "native" },
		},
		{
			cell: "`cilium.gatewayAPI`", does: "the same rollout; without it, nothing serves the Gateways any more",
			edit:    func(s settings) { s.set("cilium", map[string]any{"gatewayAPI": false}) },
			arrived: func(l *lab) bool { return l.field("configmap/cilium-config", "{.data.enable-gateway-api}") != "true" },
		},
		{
			cell: "`spegel.enabled`", does: "restart of containerd, node by node",
			edit: func(s settings) { s.set("spegel", map[string]any{"enabled": false}) },
		},
		{
			cell: "`certManager`, `spegel`, `coreDNS`: version, values", does: "rollout of that service",
			edit: func(s settings) {
				s.set("coreDNS", map[string]any{"values": map[string]any{"podAnnotations": map[string]any{"example.com/team": "dns"}}})
			},
		},
	},
	effect: effect{replaced: []string{agents, operator, `^kube-system/coredns-`, `^spegel/`}},
}

// taintByHand taints a worker that has registered. The gate names the command, which a person runs.
func taintByHand(load *load) func(*lab) {
	one := row{
		cell: "`nodePools[].taints`", does: "nothing on running nodes: change their taints by hand, the gate names the command",
		edit: func(s settings) { s.pool(1)["taints"] = map[string]any{"example.com/reserved": "PreferNoSchedule"} },
	}
	command := regexp.MustCompile(`kubectl (taint node infra-worker-1 --overwrite example\.com/reserved:PreferNoSchedule)`)
	return func(l *lab) {
		before, began := l.survey(), time.Now()
		editStackFile(l.t, l.stackFile("infra"), one.edit)
		out, err := l.try("pulumi", "--non-interactive", "--color=never", "up", "--yes", "--skip-preview", "--stack", "infra")
		require.Error(l.t, err, "the gate is open")
		said := command.FindStringSubmatch(out)
		require.NotNil(l.t, said, "the gate names no command: %s", end(out))
		l.kubectl(strings.Fields(said[1])...)
		l.hands++
		l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
		effect{}.check(l.t, before, l.survey(), load.served(l.t, began))
	}
}

// refused declares one after the other what `up` does not do in a cluster that runs. The last run removes what they have left in the state.
func refused(l *lab) {
	for _, one := range refusals {
		file := l.stackFile("infra")
		declared, err := os.ReadFile(file)
		require.NoError(l.t, err)
		before, work := l.survey(), l.machineTasks()
		editStackFile(l.t, file, one.edit)
		l.fails(one.says)
		require.Equal(l.t, work, l.machineTasks(), "%s: Proxmox VE was given work", one.cell)
		require.Equal(l.t, before, l.survey(), one.cell)
		require.NoError(l.t, os.WriteFile(file, declared, 0o600))
	}
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
}

// refusals are the rows of what is refused, with the words of `up`.
var refusals = []row{
	{
		cell: "`nodePools[].nodes[].address`, `nodePools[].firstAddress`, `nodePools[].firstAddress6`", does: "refused for a node that stays",
		edit: func(s settings) { s.node("infra-cp-1")["address"] = "10.25.11.19" },
		says: `nodePools\[\]\.nodes\[\]\.address: infra-cp-1 has 10\.25\.11\.11, and 10\.25\.11\.19 is declared`,
	},
	{
		cell: "`nodePools[].nodes[].vmId`", does: "refused for a node that stays, if the cluster runs",
		edit: func(s settings) { s.node("infra-worker-1")["vmId"] = 1199 },
		says: `nodePools\[\]\.nodes\[\]\.vmId: infra-worker-1 is the VM 1121, and 1199 is declared`,
	},
	{
		cell: "`nodePools[].nodes[].diskEncryption`", does: "refused for a node that stays, if the cluster runs",
		edit: func(s settings) { s.node("infra-worker-1")["diskEncryption"] = "nodeID" },
		says: `nodePools\[\]\.nodes\[\]\.diskEncryption: the disks of infra-worker-1 were made with none, and nodeID is declared`,
	},
	{
		cell: "`talos.diskEncryption`", does: "refused for nodes that stay, if the cluster runs",
		edit: func(s settings) { s.set("talos", map[string]any{"diskEncryption": "nodeID"}) },
		says: `the disks of infra-spare-1 were made with none, and nodeID is declared`,
	},
	{
		cell: "`talos.extensions` without `siderolabs/qemu-guest-agent`", does: "refused before a machine is touched",
		edit: func(s settings) { s.set("talos", map[string]any{"extensions": []any{}}) },
		says: `talos\.extensions: infra-\S+ runs siderolabs/qemu-guest-agent, and its Talos would wait at each boot`,
	},
	{
		cell: "`nodePools[].nodes[].name`", does: "refused with the address of the old node",
		edit: func(s settings) { s.node("infra-worker-1")["name"] = "infra-worker-9" },
		says: `infra-worker-9 has the address 10\.25\.11\.21 of infra-worker-1, which is not declared any more`,
	},
	{
		cell: "`network.podCIDR`", does: "new cluster: Nodes keep their ranges. Refused, if the cluster runs",
		edit: func(s settings) { s.set("network", map[string]any{"podCIDR": "10.246.0.0/16"}) },
		says: `network\.podCIDR: Node infra-\S+ has the range 10\.244\.\d+\.0/24, which it keeps; declare the former one`,
	},
	{
		cell: "`network.serviceCIDR`, `network.ipv6`", does: "new cluster: the ranges of nodes and Services that exist never change",
		edit: func(s settings) { s.set("network", map[string]any{"serviceCIDR": "10.247.0.0/16"}) },
		says: `network\.serviceCIDR: ServiceCIDR kubernetes has the range 10\.245\.0\.0/16, which it keeps; declare the former one`,
	},
	{
		cell: "`network.vip`", does: "new cluster",
		edit: func(s settings) { s.set("network", map[string]any{"vip": "10.25.11.9"}) },
		says: `network\.vip: the cluster has 10\.25\.11\.10, and 10\.25\.11\.9 is declared`,
	},
	{
		cell: "`cluster.name`, `cluster.id`", does: "new cluster",
		edit: func(s settings) { s.set("cluster", map[string]any{"id": 7}) },
		says: `cluster\.id: the cluster has 1, and 7 is declared; declare 1, or destroy the cluster first`,
	},
	{
		cell: "`cluster.name`, `cluster.id`", does: "new cluster",
		edit: func(s settings) { s.set("cluster", map[string]any{"name": "other"}) },
		says: `cluster\.name: the cluster has infra, and other is declared; declare infra, or destroy the cluster first`,
	},
	{
		cell: "`network.nodeCIDR`", does: "with all addresses in it, drain and reboot",
		edit: func(s settings) { s.renumber("10.25.11.", "10.26.11.") },
		says: `nodePools\[\]\.nodes\[\]\.address: infra-cp-1 has 10\.25\.11\.11, and 10\.26\.11\.11 is declared`,
	},
}

var oneMore = run{rows: []row{{
	cell: "`nodePools[].count`", does: "as for nodes that are added",
	edit:    func(s settings) { s.pool(2)["count"] = 2 },
	arrived: func(l *lab) bool { return l.isReady("infra-spare-2") },
}}}

// oneLess removes one node, and replaces another one by a machine with another name, in one run.
var oneLess = run{
	rows: []row{
		{
			cell: "`nodePools[].count`", does: "as for nodes that are added, or removed at the end of the pool",
			edit:    func(s settings) { s.pool(2)["count"] = 1 },
			arrived: func(l *lab) bool { l.isGone("infra-spare-2"); return true },
		},
		{
			cell: "`nodePools[].nodes[].name`", does: "refused with the address of the old node",
			edit: func(s settings) {
				for key, value := range map[string]any{
					"address": "10.25.11.29", "vmId": 1129, "mac": "BC:24:11:00:01:29", "name": "infra-worker-9",
				} {
					s.pool(1)["nodes"].([]any)[0].(map[string]any)[key] = value
				}
			},
			arrived: func(l *lab) bool { l.isGone("infra-worker-1"); return l.isReady("infra-worker-9") },
		},
	},
	effect: effect{gone: []string{"infra-spare-2", "infra-worker-1"}},
}

func (l *lab) isReady(node string) bool {
	l.t.Helper()
	return l.field("node/"+node, `{.status.conditions[?(@.type=="Ready")].status}`) == "True"
}

var otherController = run{
	rows: []row{{
		cell: "`proxmox.scsiController`", does: "drain and reboot, node by node",
		edit: func(s settings) { s.set("proxmox", map[string]any{"scsiController": "virtio-scsi-pci"}) },
	}},
	effect: effect{rebooted: []string{"infra-cp-1", "infra-cp-2", "infra-cp-3", "infra-spare-1", "infra-worker-9"}},
}
