//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/semver"
)

// Versions that the cluster of the lifecycle begins with, and those that it is upgraded to.
const (
	olderTalos, newerTalos           = "v1.14.5", "v1.14.6"
	olderKubernetes, newerKubernetes = "v1.36.5", "v1.36.6"
)

// TestLifecycle_AClusterUnderLoadIsChangedInTurns changes a cluster of three control planes again and again, each time by its stack file
// and `pulumi up`, while its API is asked ten times a second and a workload with a PodDisruptionBudget runs.
func TestLifecycle_AClusterUnderLoadIsChangedInTurns(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "lifecycle", func(s settings) {
		s.set("talos", map[string]any{"version": olderTalos})
		s.set("kubernetes", map[string]any{"version": olderKubernetes})
	})
	comesUp(l)
	load := startLoad(l)
	load.during(l, []change{
		{"a downgrade is refused", downgradeRefused},
		{"an older Cilium is refused", ciliumRefused},
		{"Kubernetes", kubernetesUpgraded},
		{"Talos, with a failed upgrade and a kill in the middle", talosUpgraded},
		{"an extension", extensionAdded},
		{"a sysctl that reboots nothing, and one that the kernel does not have", sysctlChanged},
		{"a feature gate that does not exist, which is refused", wrongGate},
		{"a flag with a wrong value, which stops at the first control plane", wrongFlag(load)},
		{"a flag of the API servers, which restart one after the other", flagChanged(load)},
		{"memory of all machines, with a kill in the middle", memoryChanged(load)},
		{"a file on all machines, which reboots them, and one does not come back", fileChanged(load)},
		{"an argument of etcd, which reboots the control planes, with a kill in the middle", etcdArgumentChanged(load)},
		{"a limit of containers, which restarts containerd", containersLimited(load)},
		{"a reboot of all nodes, with a kill in the middle", rebooted(load)},
	})
}

// change is a change of the stack file, with the ups that make it.
type change struct {
	name string
	test func(*lab)
}

// during makes changes of a cluster under load, reports after each how the cluster served, and destroys it.
func (load *load) during(l *lab, changes []change) {
	for _, one := range changes {
		l.part(one.name, func(l *lab) {
			began, hands := time.Now(), l.hands
			one.test(l)
			load.report(l.t, one.name, began)
			l.t.Logf("hands needed: %d", l.hands-hands)
			l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
			require.Empty(l.t, l.field("nodes", "{.items[?(@.spec.unschedulable==true)].metadata.name}"), "a node was left cordoned")
		})
	}
	load.end()
	unprotectAndDestroy(l)
}

// declare changes a section of infra's stack file.
func (l *lab) declare(section string, values map[string]any) {
	l.t.Helper()
	editStackFile(l.t, l.stackFile("infra"), func(s settings) { s.set(section, values) })
}

// versions returns the versions of all nodes, each once: of Talos, kubelet and API servers.
func (l *lab) versions() (talos, kubelet, servers string) {
	l.t.Helper()
	once := func(text string) string {
		seen, all := map[string]bool{}, []string{}
		for _, one := range strings.Fields(text) {
			if !seen[one] {
				seen[one], all = true, append(all, one)
			}
		}
		return strings.Join(all, " ")
	}
	images := l.kubectl("get", "--namespace=kube-system", "pods", "--selector=k8s-app=kube-apiserver",
		"--output=jsonpath={.items[*].spec.containers[0].image}")
	var tags []string
	for _, image := range strings.Fields(images) {
		tags = append(tags, image[strings.LastIndex(image, ":")+1:])
	}
	return once(strings.NewReplacer("Talos (", "", ")", "").Replace(l.field("nodes", "{.items[*].status.nodeInfo.osImage}"))),
		once(l.field("nodes", "{.items[*].status.nodeInfo.kubeletVersion}")), once(strings.Join(tags, " "))
}

func downgradeRefused(l *lab) {
	l.declare("kubernetes", map[string]any{"version": "v1.35.4"})
	l.fails("downgrade")
	l.declare("kubernetes", map[string]any{"version": olderKubernetes})
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	_, kubelet, servers := l.versions()
	require.Equal(l.t, olderKubernetes+" "+olderKubernetes, kubelet+" "+servers)
}

// ciliumRefused declares an older Cilium than runs. Nothing of it is fetched or changed.
func ciliumRefused(l *lab) {
	l.declare("cilium", map[string]any{"version": "1.20.1"})
	l.fails("cilium.version: 1.20.1 is older than 1.20.2, which runs")
	l.declare("cilium", map[string]any{"version": "1.20.2"})
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Contains(l.t, l.field("daemonset/cilium", "{.spec.template.spec.containers[0].image}"), ":v1.20.2")
}

func kubernetesUpgraded(l *lab) {
	l.declare("kubernetes", map[string]any{"version": newerKubernetes})
	preview := l.pulumi("preview", "--diff", "--stack", "infra")
	require.Contains(l.t, preview, newerKubernetes)
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	talos, kubelet, servers := l.versions()
	require.Equal(l.t, []string{olderTalos, newerKubernetes, newerKubernetes}, []string{talos, kubelet, servers})
}

// talosUpgraded upgrades Talos. The new one does not boot on the first node, which ends the run. The next run is killed when that node has
// the newer Talos after all. The last one goes on, and does not upgrade that node again.
func talosUpgraded(l *lab) {
	l.declare("talos", map[string]any{"version": newerTalos})
	before := l.boots()
	l.must("fault", "upgrade-fails", "infra-cp-1")
	l.fails("infra-cp-1 is not back, and stays cordoned: Talos rolled back: the machine has rebooted and runs v1.14.5 again, not v1.14.6")
	l.must("fault", "--off", "upgrade-fails", "infra-cp-1")
	for name, boot := range l.boots() {
		require.Equal(l.t, name == "infra-cp-1", boot != before[name], name)
	}
	up := l.up("infra")
	up.reaches("the first control plane runs "+newerTalos, func() bool {
		out, err := l.try("kubectl", "--context=admin@infra", "get", "node", "infra-cp-1", "--output=jsonpath={.status.nodeInfo.osImage}")
		return err == nil && strings.Contains(out, newerTalos)
	})
	first := l.boots()["infra-cp-1"]
	up.kill("infra")
	l.declare("talos", map[string]any{"version": olderTalos}) // the state has had no other
	l.fails("talos.version: " + olderTalos + " is older than " + newerTalos + ", which runs on infra-cp-1, and downgrades are not made")
	l.declare("talos", map[string]any{"version": newerTalos})
	l.pulumiSays(pendingOperations, "up", "--yes", "--skip-preview", "--stack", "infra")
	l.pulumiSays(pendingOperations, "refresh", "--clear-pending-creates", "--yes", "--skip-preview", "--stack", "infra")
	talos, _, _ := l.versions()
	require.Equal(l.t, newerTalos, talos)
	require.Equal(l.t, first, l.boots()["infra-cp-1"], "it was upgraded once")
	l.allRebooted(before)
}

// boots returns the ids of all nodes' boots, by name.
func (l *lab) boots() map[string]string {
	l.t.Helper()
	all := map[string]string{}
	for _, one := range strings.Fields(l.field("nodes", `{range .items[*]}{.metadata.name}={.status.nodeInfo.bootID} {end}`)) {
		name, boot, _ := strings.Cut(one, "=")
		all[name] = boot
	}
	return all
}

// allRebooted fails the test if a node has not rebooted since.
func (l *lab) allRebooted(since map[string]string) {
	l.t.Helper()
	now := l.boots()
	require.Len(l.t, now, len(since))
	for name, boot := range since {
		require.NotEqual(l.t, boot, now[name], "%s has not rebooted", name)
	}
}

func extensionAdded(l *lab) {
	editStackFile(l.t, l.stackFile("infra"), func(s settings) {
		section := s["slipway:talos"].(map[string]any)
		extensions, _ := section["extensions"].([]any)
		section["extensions"] = append(extensions, "siderolabs/iscsi-tools")
	})
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	for _, node := range addresses {
		require.Contains(l.t, l.onNode(node, "get", "extensions"), "iscsi-tools", node)
	}
}

func sysctlChanged(l *lab) {
	editStackFile(l.t, l.stackFile("infra"), func(s settings) {
		s.set("talos", map[string]any{"sysctls": map[string]any{"vm.max_map_count": "262144", "vm.max_map_counts": "262144"}})
	})
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Contains(l.t, l.in("pulumi", "stack", "output", "gateReport", "--stack", "infra"), "the kernel has not taken vm.max_map_counts")
}

// arguments declares arguments of the API server, and nothing else in patches.
func (l *lab) arguments(values map[string]any) {
	l.t.Helper()
	l.declare("talos", map[string]any{"patches": map[string]any{"controlPlanes": []any{
		map[string]any{"cluster": map[string]any{"apiServer": map[string]any{"extraArgs": values}}},
	}}})
}

// wrongGate declares a feature gate that Kubernetes does not know. No node gets it.
func wrongGate(l *lab) {
	l.arguments(map[string]any{"feature-gates": "NoSuchGate=true"})
	l.fails(`infra-cp-1: cluster.apiServer.extraArgs.feature-gates: NoSuchGate is no feature gate of the Kubernetes that runs`)
	for _, address := range addresses {
		require.NotContains(l.t, l.onNode(address, "get", "machineconfig", "--output=yaml"), "NoSuchGate", address)
	}
	l.arguments(map[string]any{})
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
}

// wrongFlag declares a flag with a value that the API server does not take, so that it does not start. The next run corrects it: no other
// control plane has it.
func wrongFlag(load *load) func(*lab) {
	const wrong = "maxage=1" // misspelt; only the API server itself reads these directives
	return func(l *lab) {
		began := time.Now()
		l.declare("lifecycle", map[string]any{"returnTimeout": "1m"})
		l.arguments(map[string]any{"strict-transport-security-directives": wrong})
		l.fails(`infra-cp-1 is not back: .*\(last: kube-apiserver .*; no other node is changed`)
		for _, name := range []string{"infra-cp-2", "infra-cp-3"} {
			require.NotContains(l.t, l.onNode(addresses[name], "get", "staticpods", "kube-apiserver", "--output=yaml"), wrong, name)
		}
		l.arguments(map[string]any{})
		l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
		require.Equal(l.t, 1, load.served(l.t, began).ServersAway, "API servers that were away at once")
	}
}

// flagChanged declares a flag of the API servers. Each starts again when the one before is Ready with it.
func flagChanged(load *load) func(*lab) {
	return func(l *lab) {
		before, began := l.boots(), time.Now()
		l.declare("lifecycle", map[string]any{"returnTimeout": "10m"})
		l.arguments(map[string]any{"max-requests-inflight": "500"})
		l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
		require.Equal(l.t, before, l.boots(), "no node reboots")
		for _, name := range []string{"infra-cp-1", "infra-cp-2", "infra-cp-3"} {
			require.Contains(l.t, l.onNode(addresses[name], "get", "staticpods", "kube-apiserver", "--output=yaml"),
				"--max-requests-inflight=500", name)
		}
		seen := load.served(l.t, began)
		require.Equal(l.t, 1, seen.ServersAway, "API servers that were away at once")
		require.Empty(l.t, seen.Away, "no node is cordoned")
	}
}

// memoryChanged changes the memory of all machines: Proxmox reboots them. It kills the run while a node is in its turn. The next one goes
// on.
func memoryChanged(load *load) func(*lab) {
	return func(l *lab) {
		editStackFile(l.t, l.stackFile("infra"), func(s settings) {
			s.pool(0)["memory"], s.pool(1)["memory"] = "12GiB", "24GiB"
		})
		preview := l.pulumiSays(`may reboot for its changed memory`, "preview", "--stack", "infra")
		require.Contains(l.t, preview, "infra-cp-1 may reboot for its changed memory")
		require.Contains(l.t, preview, "infra-worker-2 may reboot for its changed memory")
		before, began := l.boots(), time.Now()
		l.killedInTheFirstTurn()
		l.allRebooted(before)
		load.oneAway(l.t, began)
	}
}

// patches declares what changes machine configurations: a file on all machines, which may be a secret, an argument of etcd if etcd is true,
// and a limit of containers if limits is true.
func (l *lab) patches(etcd, limits bool) {
	l.t.Helper()
	l.setSecret("infra", "talosSecretPatches",
		`{all: [{machine: {files: [{path: /var/etc/lifecycle, op: create, permissions: 420, content: changed}]}}]}`)
	patches := map[string]any{}
	if limits {
		patches["all"] = []any{map[string]any{"machine": map[string]any{"baseRuntimeSpecOverrides": map[string]any{
			"process": map[string]any{"rlimits": []any{map[string]any{"type": "RLIMIT_NOFILE", "hard": 65536, "soft": 65536}}},
		}}}}
	}
	if etcd {
		patches["controlPlanes"] = []any{map[string]any{"cluster": map[string]any{"etcd": map[string]any{
			"extraArgs": map[string]any{"quota-backend-bytes": "4294967296"},
		}}}}
	}
	l.declare("talos", map[string]any{"patches": patches})
}

// onNode runs talosctl for a node.
func (l *lab) onNode(address string, args ...string) string {
	l.t.Helper()
	return l.in(append([]string{"talosctl", "--context=infra", "--nodes=" + address}, args...)...)
}

// addresses are those of the lifecycle's machines, by name.
var addresses = map[string]string{
	"infra-cp-1": "10.25.11.11", "infra-cp-2": "10.25.11.12", "infra-cp-3": "10.25.11.13",
	"infra-worker-1": "10.25.11.21", "infra-worker-2": "10.25.11.22",
}

// fileChanged declares a file, which a node has only after a reboot: before Talos 1.14, Talos reboots, and later Slipway does. A worker
// does not boot, which ends the run. The next one goes on.
func fileChanged(load *load) func(*lab) {
	return func(l *lab) {
		l.patches(false, false)
		l.declare("lifecycle", map[string]any{"returnTimeout": "2m"})
		before, began := l.boots(), time.Now()
		l.must("fault", "reboot-loop", "infra-worker-1") // a kexec passes over what keeps a VM from booting
		l.fails("infra-worker-1 is not back, and stays cordoned: .*; no other node is changed")
		require.Equal(l.t, before["infra-worker-2"], l.boots()["infra-worker-2"])
		l.must("fault", "--off", "reboot-loop", "infra-worker-1")
		l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
		l.allRebooted(before)
		load.oneAway(l.t, began)
		for _, address := range addresses {
			require.Equal(l.t, "changed", strings.TrimSpace(l.onNode(address, "read", "/var/etc/lifecycle")), address)
		}
	}
}

// killedInTheFirstTurn kills a run while the first control plane is in its turn. The next one goes on.
func (l *lab) killedInTheFirstTurn() {
	up := l.up("infra")
	up.reaches("the first control plane is in its turn", func() bool {
		out, err := l.try("kubectl", "--context=admin@infra", "get", "node", "infra-cp-1", "--output=jsonpath={.spec.unschedulable}")
		return err == nil && out == "true"
	})
	up.kill("infra")
	l.pulumiSays(pendingOperations, "up", "--yes", "--skip-preview", "--stack", "infra")
	l.pulumiSays(pendingOperations, "refresh", "--clear-pending-creates", "--yes", "--skip-preview", "--stack", "infra")
}

// etcdArgumentChanged declares an argument of etcd, for which Slipway reboots the control planes. It kills the run while the first is in
// its turn. The next one goes on.
func etcdArgumentChanged(load *load) func(*lab) {
	return func(l *lab) {
		l.patches(true, false)
		before, began := l.boots(), time.Now()
		l.killedInTheFirstTurn()
		for name, boot := range l.boots() {
			isControlPlane := strings.Contains(name, "-cp-")
			require.Equal(l.t, isControlPlane, boot != before[name], name)
			if isControlPlane {
				require.Contains(l.t, l.onNode(addresses[name], "logs", "etcd"), "--quota-backend-bytes=4294967296", name)
			}
		}
		seen := load.served(l.t, began)
		require.Equal(l.t, 1, seen.MostAway, "nodes that were away at once")
		require.Len(l.t, seen.Away, 3, "nodes that were seen in their turn")
	}
}

// rebooted declares a time before which no node may have booted, by the document's command.
func rebooted(load *load) func(*lab) {
	return func(l *lab) {
		before, began := l.boots(), time.Now()
		l.in("sh", "-c", `pulumi config set --stack infra --path slipway:lifecycle.bootedSince "$(date -u +%Y-%m-%dT%H:%M:%SZ)"`)
		l.killedInTheFirstTurn()
		l.allRebooted(before)
		load.oneAway(l.t, began)
	}
}

// containersLimited declares a limit of containers: before Talos 1.14, Talos reboots the nodes, and later it restarts containerd.
func containersLimited(load *load) func(*lab) {
	return func(l *lab) {
		l.patches(true, true)
		before, began := l.boots(), time.Now()
		l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
		if semver.Compare(newerTalos, "v1.14") < 0 {
			l.allRebooted(before)
			load.oneAway(l.t, began)
			return
		}
		require.Equal(l.t, before, l.boots(), "no node reboots")
		require.Empty(l.t, load.served(l.t, began).Away, "no node is cordoned")
		for name, address := range addresses {
			require.Contains(l.t, l.onNode(address, "service", "cri"), "[Finished]", "%s: containerd has restarted", name)
		}
	}
}
