//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLifecycle_NodesComeAndGoUnderLoad adds nodes to a cluster and removes others, each time by its stack file and `pulumi up`.
func TestLifecycle_NodesComeAndGoUnderLoad(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "nodes", func(s settings) {
		s.withoutProviders()
		s.set("gitops", map[string]any{"enabled": false})
		s.set("proxmox", map[string]any{"nodes": []any{"pve1", "pve2", "pve3", "pve4", "pve5"}})
		for i := range 2 { // a removal must not place the others elsewhere
			for j, node := range s.pool(i)["nodes"].([]any) {
				node.(map[string]any)["host"] = fmt.Sprint("pve", j+1)
			}
		}
	})
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	load := startLoad(l)
	load.during(l, []change{
		{"a worker is added", workerAdded},
		{"a worker that is off is left out, and takes part again later", workerLeftOut},
		{"a worker is removed, with a kill in the middle", workerRemoved},
		{"a control plane and a worker get another generation", nodesReplaced},
		{"the first control plane is dead, and is replaced", deadControlPlaneReplaced},
		{"two control planes are added", controlPlanesAdded},
		{"control planes are removed one by one", controlPlanesRemoved},
	})
}

// TestLifecycle_TheOnlyControlPlaneIsResetIfItsFirstBootHangs creates a cluster of one machine. While that hangs, no control plane answers
// the step that asks all nodes what they run.
func TestLifecycle_TheOnlyControlPlaneIsResetIfItsFirstBootHangs(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "hangs", func(s settings) {
		s.withoutProviders()
		oneNode(s)
		s.set("gitops", map[string]any{"enabled": false})
	})
	l.must("fault", "boot-hangs", "infra-cp-1")
	require.Contains(t, l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra"), "so its boot hangs; resetting the machine")
	require.Len(t, l.tasks("qmreset"), 1)
}

// TestLifecycle_AnInterruptEndsWhatTheRunHasStarted interrupts a run, as Ctrl-C does, while its probe waits for a kubelet that is down.
func TestLifecycle_AnInterruptEndsWhatTheRunHasStarted(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "interrupt", func(s settings) {
		s.withoutProviders()
		oneNode(s)
		s.set("gitops", map[string]any{"enabled": false})
	})
	l.must("fault", "kubelet-down", "infra-cp-1")
	// The probe itself, and not "go run".
	const probes = `exec 2>/dev/null; for p in /proc/[0-9]*; do tr "\0" " " <"$p/cmdline" | grep "^[^ ]*/slipway-probe gate"; done; true`
	run := l.up("infra")
	l.eventually("the gate waits", func() bool { return l.in("sh", "-c", probes) != "" })
	l.in("kill", "-INT", "--", "-"+run.group)
	interrupted := time.Now()
	select {
	case err := <-run.ended:
		require.Error(t, err, "up was interrupted: %s", end(run.said()))
		t.Logf("up has ended %s after the interrupt: %s", time.Since(interrupted).Round(time.Millisecond), end(run.said()))
	case <-time.After(30 * time.Second): // the gate itself would wait for ten minutes
		require.Fail(t, "up goes on after the interrupt", "%s\n%s", l.in("sh", "-c", probes), end(run.said()))
	}
	require.Empty(t, l.in("sh", "-c", probes), "the probe goes on")

	l.must("fault", "--off", "kubelet-down", "infra-cp-1")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	unprotectAndDestroy(l)
}

// adds declares one more node in a pool.
func (l *lab) adds(pool int, name string, number int, host string) {
	l.t.Helper()
	editStackFile(l.t, l.stackFile("infra"), func(s settings) {
		s.pool(pool)["nodes"] = append(s.pool(pool)["nodes"].([]any), map[string]any{
			"name": name, "vmId": 1100 + number, "mac": fmt.Sprintf("BC:24:11:00:01:%d", number), "address": fmt.Sprintf("10.25.11.%d", number),
			"host": host,
		})
	})
}

// removes declares a node no longer.
func (l *lab) removes(pool int, name string) {
	l.t.Helper()
	editStackFile(l.t, l.stackFile("infra"), func(s settings) {
		s.pool(pool)["nodes"] = slices.DeleteFunc(s.pool(pool)["nodes"].([]any), func(node any) bool {
			return node.(map[string]any)["name"] == name
		})
	})
}

// unprotect removes the protection of resources, by the end of their name. A person does that.
func (l *lab) unprotect(name string) {
	l.t.Helper()
	l.hands++
	found := slices.DeleteFunc(urns(l.t, l, "infra"), func(urn string) bool { return !strings.HasSuffix(urn, name) })
	require.NotEmpty(l.t, found)
	for _, urn := range found {
		l.pulumi("state", "unprotect", urn, "--yes", "--stack", "infra")
	}
}

// isGone checks that nothing is left of a node: neither Node object, nor member of etcd, nor VM.
func (l *lab) isGone(name string) {
	l.t.Helper()
	require.NotContains(l.t, strings.Fields(l.field("nodes", "{.items[*].metadata.name}")), name)
	require.NotContains(l.t, l.etcdMembers(), name)
	for _, vm := range l.status().VMs {
		require.NotEqual(l.t, name, vm.Name)
	}
}

// etcdMembers returns the names of etcd's members that have a vote.
func (l *lab) etcdMembers() (names []string) {
	l.t.Helper()
	for i, line := range strings.Split(strings.TrimSpace(l.in("talosctl", "--context=infra", "--nodes=10.25.11.12", "etcd", "members")), "\n") {
		fields := strings.Fields(line)
		if i > 0 && len(fields) > 2 && fields[len(fields)-1] == "false" {
			names = append(names, fields[2])
		}
	}
	slices.Sort(names)
	return names
}

func workerAdded(l *lab) {
	l.adds(1, "infra-worker-3", 23, "pve3")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Equal(l.t, "True", l.field("node/infra-worker-3", `{.status.conditions[?(@.type=="Ready")].status}`))
}

// workerLeftOut stops a worker, and changes all machines without it. The next run, once it runs again, changes it as well.
func workerLeftOut(l *lab) {
	const limit = `vm.max_map_count: "262145"`
	configuration := func(address string) string { return l.onNode(address, "get", "machineconfig", "--output=yaml") }
	const outOfService = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
	l.proxmox("POST", "nodes/pve3/qemu/1123/status/stop", new(any))
	l.kubectl("taint", "node", "infra-worker-3", outOfService) // otherwise its pods stop other drains for five minutes
	l.declare("lifecycle", map[string]any{
		"skip": []any{map[string]any{"name": "infra-worker-3", "reason": "waits for a new disk"}},
	})
	l.declare("talos", map[string]any{"sysctls": map[string]any{"vm.max_map_count": "262145"}})
	editStackFile(l.t, l.stackFile("infra"), func(s settings) { s.pool(1)["memory"] = "24GiB" })
	uid := l.field("node/infra-worker-3", "{.metadata.uid}")
	require.Contains(l.t, l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra"), "lifecycle.skip leaves it out: waits for a new disk")
	require.Contains(l.t, configuration(addresses["infra-worker-2"]), limit)
	l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")

	l.proxmox("POST", "nodes/pve3/qemu/1123/status/start", new(any))
	l.kubectl("taint", "node", "infra-worker-3", outOfService+"-")
	editStackFile(l.t, l.stackFile("infra"), func(s settings) { delete(s, "slipway:lifecycle") })
	l.pulumiSays("infra-worker-3 may reboot for its changed memory", "preview", "--stack", "infra")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Contains(l.t, configuration("10.25.11.23"), limit)
	require.Equal(l.t, uid, l.field("node/infra-worker-3", "{.metadata.uid}"), "it is the same node")
}

// workerRemoved kills the run when the worker is cordoned. The next one goes on.
func workerRemoved(l *lab) {
	l.removes(1, "infra-worker-1")
	require.Contains(l.t, l.pulumi("preview", "--diff", "--stack", "infra"),
		"infra-worker-1 leaves the cluster before anything else is changed, and then its machine is deleted")
	up := l.up("infra")
	up.reaches("the worker is cordoned", func() bool {
		out, err := l.try("kubectl", "--context=admin@infra", "get", "node", "infra-worker-1", "--ignore-not-found",
			"--output=jsonpath={.metadata.name} {.spec.unschedulable}")
		return err == nil && (out == "" || strings.Contains(out, "true"))
	})
	up.kill("infra")
	l.pulumiSays(pendingOperations, "up", "--yes", "--skip-preview", "--stack", "infra")
	l.isGone("infra-worker-1")
}

// generation declares another generation of a node.
func (l *lab) generation(pool int, name string, number int) {
	l.t.Helper()
	editStackFile(l.t, l.stackFile("infra"), func(s settings) {
		for _, node := range s.pool(pool)["nodes"].([]any) {
			if node := node.(map[string]any); node["name"] == name {
				node["generation"] = number
			}
		}
	})
}

// encryptsDisks declares an encryption of disks for all nodes but those that keep none.
func (l *lab) encryptsDisks(with string, keep func(name string) bool) {
	l.t.Helper()
	l.declare("talos", map[string]any{"diskEncryption": with})
	editStackFile(l.t, l.stackFile("infra"), func(s settings) {
		for pool := range 2 {
			for _, node := range s.pool(pool)["nodes"].([]any) {
				if node := node.(map[string]any); keep(node["name"].(string)) {
					node["diskEncryption"] = "none"
				}
			}
		}
	})
}

// nodesReplaced replaces two nodes under their names, with encrypted disks. The VM of the control plane is protected.
func nodesReplaced(l *lab) {
	uids := `{range .items[*]}{.metadata.name}={.metadata.uid} {end}`
	before := l.field("nodes", uids)
	l.generation(0, "infra-cp-2", 2)
	l.generation(0, "infra-cp-3", 2)
	l.fails("infra-cp-2, infra-cp-3 are control planes, and one run removes or replaces one of them at most")
	l.generation(0, "infra-cp-3", 1)
	l.generation(1, "infra-worker-2", 2)
	l.encryptsDisks("nodeID", func(string) bool { return false })
	l.fails("the disks of infra-cp-1 were made with none, and nodeID is declared, with which Talos would not boot from them any more")
	l.encryptsDisks("nodeID", func(name string) bool { return name != "infra-cp-2" && name != "infra-worker-2" })
	require.Contains(l.t, l.pulumi("preview", "--diff", "--stack", "infra"), "made anew: infra-cp-2, infra-worker-2")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Equal(l.t, []string{"infra-cp-1", "infra-cp-2", "infra-cp-3"}, l.etcdMembers())
	after := strings.Fields(l.field("nodes", uids))
	for _, node := range strings.Fields(before) {
		name, _, _ := strings.Cut(node, "=")
		if replaced := name == "infra-cp-2" || name == "infra-worker-2"; replaced {
			require.NotContains(l.t, after, node, "its Node object is another one")
			require.Equal(l.t, "True", l.field("node/"+name, `{.status.conditions[?(@.type=="Ready")].status}`))
		} else {
			require.Contains(l.t, after, node)
		}
	}
	for name, encrypted := range map[string]bool{"infra-cp-1": false, "infra-cp-2": true, "infra-worker-2": true} {
		state := l.onNode(addresses[name], "get", "volumestatus", "STATE", "--output=yaml")
		require.Equal(l.t, encrypted, strings.Contains(state, "encryptionProvider: luks2"), "%s\n%s", name, state)
	}
	l.generation(0, "infra-cp-2", 1)
	l.fails("the machine of infra-cp-2 is of generation 2, and 1 is declared; declare 2 to keep it, or 3 to replace it")
	l.generation(0, "infra-cp-2", 2)
}

func deadControlPlaneReplaced(l *lab) {
	l.proxmox("POST", "nodes/pve1/qemu/1111/status/stop", new(any))
	l.removes(0, "infra-cp-1")
	l.adds(0, "infra-cp-4", 14, "pve4")
	l.unprotect("infra-cp-1-vm")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.isGone("infra-cp-1")
	require.Equal(l.t, []string{"infra-cp-2", "infra-cp-3", "infra-cp-4"}, l.etcdMembers())
}

// snapshots returns the names of the snapshots of etcd that runs have taken of infra.
func (l *lab) snapshots() string {
	l.t.Helper()
	return l.in("sh", "-c", `cd "${XDG_STATE_HOME:-$HOME/.local/state}/slipway/snapshots" 2>/dev/null && ls infra-*.db || true`)
}

func controlPlanesAdded(l *lab) {
	l.adds(0, "infra-cp-5", 15, "pve5")
	l.adds(0, "infra-cp-6", 16, "pve1")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Equal(l.t, []string{"infra-cp-2", "infra-cp-3", "infra-cp-4", "infra-cp-5", "infra-cp-6"}, l.etcdMembers())
}

func controlPlanesRemoved(l *lab) {
	l.removes(0, "infra-cp-5")
	l.removes(0, "infra-cp-6")
	l.fails("infra-cp-5, infra-cp-6 are control planes, and one run removes or replaces one of them at most")
	require.Len(l.t, l.etcdMembers(), 5)
	l.adds(0, "infra-cp-5", 15, "pve5")
	l.declare("lifecycle", map[string]any{"allowEvenControlPlanes": true})
	for _, name := range []string{"infra-cp-6", "infra-cp-5"} {
		l.removes(0, name)
		l.unprotect(name + "-vm")
		before := l.snapshots()
		l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
		l.isGone(name)
		require.NotEqual(l.t, before, l.snapshots(), "etcd was not saved before %s left", name)
	}
	require.Equal(l.t, []string{"infra-cp-2", "infra-cp-3", "infra-cp-4"}, l.etcdMembers())
}
