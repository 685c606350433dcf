//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/require"
)

// The built Talos that the tests boot, and the versions in it.
const (
	realTalos      = "talos-1.13,talos-1.14,talos-1.14-next,talos-1.14-broken"
	realBefore     = "v1.13.9"
	realVersion    = "v1.14.1"
	realBroken     = "v1.14.3" // does not boot
	realKubernetes = "v1.35.8"
	realKubeNext   = "v1.36.4"
)

// realBoots is how long one machine in QEMU may take, without KVM, from nothing to a registered node.
const realBoots = 40 * time.Minute

// realNode is the address of the machine, and realLoopback configures a network plug-in of Talos's own, which makes its Node Ready:
// Cilium's images are not in the lab.
const (
	realNode     = "10.25.11.11"
	realLoopback = `{"cniVersion": "1.0.0", "name": "lab", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true, ` +
		`"ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}`
	realPlugins = "[plugins.'io.containerd.cri.v1.runtime'.cni]\n  conf_dir = '/var/cni'\n"
)

// realLab starts a lab with one machine, which runs a version of the real Talos once it is installed.
func realLab(t *testing.T, name, version, talos string) *lab {
	t.Helper()
	l := labOfShape(t, name, func(s settings) {
		s.withoutProviders()
		oneNode(s)
		s.set("gitops", map[string]any{"enabled": false})
		s.set("talos", map[string]any{"version": version, "extensions": []any{}}) // nothing answers at the guest agent's channel
		s.set("kubernetes", map[string]any{"version": realKubernetes})
		s.set("network", map[string]any{"ntp": []any{"10.25.11.1"}}) // no server has NTS, by which Talos 1.14 asks its own
		s.set("readiness", map[string]any{"timeout": "30m"})         // a kubelet that is too slow to register begins again after 5 minutes
		s.set("spegel", map[string]any{"enabled": false})            // its file of containerd's settings is the network plug-in's
		s.pool(0)["cores"], s.pool(0)["memory"] = 2, "4GiB"
	}, "--talos", talos)
	suitsTheLab(l)
	return l
}

// TestRealTalos_TakesChangesAndComesBack boots the real Talos in QEMU, from the unmodified program's VM and configuration, changes what
// runs there – its configuration, Talos, Kubernetes, its disk and its CAs – and loses it. The steps after the gate of the machines need images
// that the lab does not have, so each run is killed there.
func TestRealTalos_TakesChangesAndComesBack(t *testing.T) {
	l := realLab(t, "real", realBefore, realTalos)
	l.part("a killed up is finished by the next", killedAtFivePoints)
	l.part("up again changes nothing", changesNothingReally)
	for _, change := range realChanges {
		l.part(change.name, change.test)
	}
	l.part("a worker joins, and goes", joinsAndGoes)
	l.part("a lost machine comes back from a snapshot", comesBackReally)
	l.part("destroy", destroyedReally)
}

// TestRealTalos_AControlPlaneJoinsAndGoes is apart because it asks the most of the machine.
func TestRealTalos_AControlPlaneJoinsAndGoes(t *testing.T) {
	l := realLab(t, "real-planes", realBefore, realTalos)
	l.part("a machine", reallyUp)
	l.part("a control plane joins, and goes", controlPlaneJoinsAndGoes)
	l.part("destroy", destroyedReally)
}

func reallyUp(l *lab) {
	l.upTo(machinesGate, true)
	connects(l)
}

// TestRecord_AnswersOfTheRealTalos writes what the real Talos of each minor version answers into lab/talos/testdata/real.
func TestRecord_AnswersOfTheRealTalos(t *testing.T) {
	recorder := filepath.Join(t.TempDir(), "recorder")
	folder, err := filepath.Abs("../../lab/talos")
	require.NoError(t, err)
	build := exec.CommandContext(t.Context(), "go", "-C", folder, "test", "-c", "-o", recorder, ".")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for minor, version := range map[string]string{"1.12": "v1.12.6", "1.13": realBefore, "1.14": realVersion} {
		t.Run(minor, func(t *testing.T) {
			l := realLab(t, "record", version, "talos-"+minor)
			reallyUp(l)
			l.eventually("the machine is ready", func() bool {
				return strings.Contains(l.onNode(realNode, "get", "machinestatus", "--output=yaml"), "ready: true")
			})
			require.NoError(t, os.MkdirAll(filepath.Join(folder, "testdata/real", minor), 0o755))
			l.in("sh", "-c", `cd "$1" && exec "$2" -test.run "TestReal_ANode/$3" -record "$SLIPWAY_LAB/talosconfig" -node "$4"`,
				"sh", folder, recorder, minor, realNode)
		})
	}
}

// suitsTheLab gives the machine the files of the network plug-in, and leaders the time that they need without KVM. Files of a configuration
// may be secret, so all of it is a secret patch.
func suitsTheLab(l *lab) {
	l.t.Helper()
	file := func(path, content string) map[string]any {
		return map[string]any{"path": path, "op": "create", "permissions": 0o644, "content": content}
	}
	files := []any{file("/var/cni/10-lab.conflist", realLoopback), file("/etc/cri/conf.d/20-customization.part", realPlugins)}
	leader := map[string]any{"extraArgs": map[string]any{"leader-elect-lease-duration": "60s", "leader-elect-renew-deadline": "50s"}}
	patches, err := json.Marshal(map[string]any{
		"all":           []any{map[string]any{"machine": map[string]any{"files": files}}},
		"controlPlanes": []any{map[string]any{"cluster": map[string]any{"controllerManager": leader, "scheduler": leader}}},
	})
	require.NoError(l.t, err)
	l.setSecret("infra", "talosSecretPatches", string(patches))
}

// upTo runs up until an operation on a resource begins or, with ended, has ended, kills it, and returns all operations on resources that
// were seen until then, by the resources' names.
func (l *lab) upTo(name string, ended bool) map[string]string {
	l.t.Helper()
	seen, began := map[string]string{}, time.Now()
	run := l.engine("up", "--yes", "--skip-preview")
	run.longest = realBoots
	over := run.follows(func(m moment) bool {
		short := m.urn[strings.LastIndex(m.urn, ":")+1:]
		seen[short] = m.op
		return short != name || m.ended != ended || m.op == "replace" || m.op == "delete-replaced" // before it is created again
	})
	require.False(l.t, over, "up ended before %s\n%s", name, end(run.said()))
	run.kill("infra")
	l.t.Logf("%s after %s", name, time.Since(began).Round(time.Second))
	return seen
}

// The resource with which the machines' part of a run ends.
const machinesGate = "machines-probe"

func killedAtFivePoints(l *lab) {
	// The boot of the real Talos hangs now and then, and only the run that has created the VM resets it: so no run is killed between.
	l.upTo("talos-infra-cp-1-vm", false)
	l.upTo("talos-infra-cp-1-apply", false)
	l.upTo("talos-bootstrap", false)
	l.upTo("talos-bootstrap", true)
	l.upTo(machinesGate, false)
	l.upTo(machinesGate, true)
	connects(l)
	state := l.status()
	require.Len(l.t, state.VMs, 1)
	require.Equal(l.t, "on", state.VMs[0].Stage, "QEMU runs, no simulated node")
	require.Equal(l.t, realKubernetes, l.field("node/infra-cp-1", "{.status.nodeInfo.kubeletVersion}"))
	require.Contains(l.t, l.field("node/infra-cp-1", "{.status.nodeInfo.osImage}"), realBefore)
}

// connects writes the contexts that the lab takes from the outputs of a run that has ended: the client of Talos is in the state, too.
func connects(l *lab) {
	l.t.Helper()
	var state struct {
		Deployment struct {
			Resources []struct {
				URN     string
				Outputs struct{ ClientConfiguration struct{ Plaintext string } }
			}
		}
	}
	exported := l.secret("pulumi", "--non-interactive", "stack", "export", "--show-secrets", "--stack", "infra")
	require.NoError(l.t, json.Unmarshal([]byte(exported), &state))
	var client struct{ CACertificate, ClientCertificate, ClientKey json.RawMessage }
	for _, r := range state.Deployment.Resources {
		if strings.Contains(r.URN, "::talos-secrets") { // the last one is of the newest CA
			require.NoError(l.t, json.Unmarshal([]byte(r.Outputs.ClientConfiguration.Plaintext), &client))
		}
	}
	config, err := json.Marshal(map[string]any{"context": "infra", "contexts": map[string]any{"infra": map[string]any{
		"endpoints": []string{realNode}, "ca": l.revealed(client.CACertificate), "crt": l.revealed(client.ClientCertificate),
		"key": l.revealed(client.ClientKey),
	}}})
	require.NoError(l.t, err)
	require.NoError(l.t, os.WriteFile(filepath.Join(l.home(), "talosconfig"), config, 0o600))
	l.onNode(realNode, "kubeconfig", "--force-context-name=admin@infra", "--force")
}

// revealed returns a text of an exported state, which may be a secret within a secret.
func (l *lab) revealed(value json.RawMessage) string {
	l.t.Helper()
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	var secret struct{ Plaintext string }
	require.NoError(l.t, json.Unmarshal(value, &secret))
	require.NotEmpty(l.t, secret.Plaintext)
	return l.revealed(json.RawMessage(secret.Plaintext))
}

// changesNothingReally previews: resources that are there stay the same. A refresh finds no other values.
func changesNothingReally(l *lab) {
	there := map[string]bool{}
	for _, urn := range urns(l.t, l, "infra") {
		there[urn] = true
	}
	run, looked := l.engine("preview"), map[string]bool{}
	require.True(l.t, run.follows(func(m moment) bool {
		if there[m.urn] {
			require.Contains(l.t, []string{"same", "read"}, m.op, m.urn)
			looked[m.urn] = true
		}
		return true
	}))
	said, err := run.end(longest)
	require.NoError(l.t, err, "%s", end(said))
	require.Greater(l.t, len(looked), 10, "resources that the preview has looked at")
	l.pulumiSays(pendingOperations, "refresh", "--clear-pending-creates", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "infra")
}

// realChange is a change of the machine's configuration.
type realChange struct {
	name string
	test func(*lab)
}

// realChanges are changes, each with what it does to the machine. What reboots is the last.
var realChanges = []realChange{
	{"a sysctl", func(l *lab) {
		l.declare("talos", map[string]any{"sysctls": map[string]any{
			"vm.max_map_count": "262144", "vm.max_map_counts": "262144", "kernel.pid_max": "many",
		}})
		l.staysUp()
		require.Equal(l.t, "262144", strings.TrimSpace(l.onNode(realNode, "read", "/proc/sys/vm/max_map_count")))
		taken := l.onNode(realNode, "get", "kernelparamstatuses", "--output=yaml")
		require.Regexp(l.t, `id: proc\.sys\.vm\.max_map_count\n(?s:.*?)\n\s+current: "?262144`, taken)
		require.NotContains(l.t, taken, "proc.sys.vm.max_map_counts", "a parameter that the kernel does not have")
		require.Contains(l.t, taken, "proc.sys.kernel.pid_max\n", "Talos has a default of it, which it sets instead")
		require.NotContains(l.t, taken, "many", "a value that the kernel refuses")
	}},
	{"a feature gate that does not exist, which is refused", func(l *lab) {
		l.patchReally(map[string]any{"cluster": map[string]any{"apiServer": map[string]any{
			"extraArgs": map[string]any{"feature-gates": "NoSuchGate=true"},
		}}})
		l.fails(`infra-cp-1: cluster.apiServer.extraArgs.feature-gates: NoSuchGate is no feature gate of the Kubernetes that runs`)
	}},
	{"a flag of the API server", func(l *lab) {
		l.patchReally(map[string]any{"cluster": map[string]any{"apiServer": map[string]any{
			"extraArgs": map[string]any{"max-requests-inflight": "500"},
		}}})
		l.staysUp()
		require.Contains(l.t, l.field("pod/kube-apiserver-infra-cp-1", "{.spec.containers[0].command}"), "--max-requests-inflight=500")
	}},
	{"a setting of the kubelet", func(l *lab) {
		l.declare("talos", map[string]any{"kubelet": map[string]any{"maxPods": 99}})
		l.staysUp()
		l.eventually("the Node has it", func() bool { return l.field("node/infra-cp-1", "{.status.capacity.pods}") == "99" })
	}},
	{"a link, which is tried", func(l *lab) {
		l.patchReally(map[string]any{"apiVersion": "v1alpha1", "kind": "DummyLinkConfig", "name": "dummy7"})
		l.staysUp()
		require.Contains(l.t, l.onNode(realNode, "get", "links"), "dummy7")
	}},
	{"a network that cuts the machine off, which Talos takes back", cutsItselfOff},
	{"a configuration that is only tried, which Talos takes back", func(l *lab) {
		count := func() string { return strings.TrimSpace(l.onNode(realNode, "read", "/proc/sys/vm/max_map_count")) }
		before, was := l.bootID(), count()
		l.onNode(realNode, "patch", "machineconfig", "--mode=try", "--timeout=1m",
			`--patch={"machine": {"sysctls": {"vm.max_map_count": "262143"}}}`)
		l.eventually("it is tried", func() bool { return count() == "262143" })
		l.eventually("it is taken back", func() bool { return count() == was })
		require.Equal(l.t, before, l.bootID(), "the machine has rebooted")
	}},
	{"an argument of etcd and a bigger disk, which reboot", func(l *lab) {
		capacity := func() string { return l.field("node/infra-cp-1", "{.status.capacity.ephemeral-storage}") }
		small, before := capacity(), l.bootID()
		editStackFile(l.t, l.stackFile("infra"), func(s settings) { s.pool(0)["disk"] = "44GiB" })
		l.patchReally(map[string]any{"cluster": map[string]any{"etcd": map[string]any{
			"extraArgs": map[string]any{"heartbeat-interval": "1000", "election-timeout": "10000"},
		}}})
		l.upTo("talos-infra-cp-1-apply", true)
		require.NotEqual(l.t, before, l.bootID())
		require.Contains(l.t, l.onNode(realNode, "logs", "etcd"), "--election-timeout=10000")
		l.eventually("the Node has the space", func() bool { return capacity() != small })
	}},
	{"the next minor of Talos", upgradedReally},
	{"a release that does not boot, before which Talos goes back", func(l *lab) {
		l.declare("talos", map[string]any{"version": realBroken})
		before := l.bootID()
		l.fails("infra-cp-1 is not back, and stays cordoned: Talos rolled back: the machine has rebooted and runs " + realVersion +
			" again, not " + realBroken)
		require.NotEqual(l.t, before, l.bootID())
	}},
	{"the release that runs, and the next minor of Kubernetes", func(l *lab) {
		l.declare("talos", map[string]any{"version": realVersion})
		l.declare("kubernetes", map[string]any{"version": realKubeNext})
		before := l.bootID()
		l.upTo("talos-upgrade", true)
		require.Equal(l.t, before, l.bootID(), "the machine has rebooted")
		l.isSchedulable()
		require.Equal(l.t, realKubeNext, l.field("node/infra-cp-1", "{.status.nodeInfo.kubeletVersion}"))
		require.Contains(l.t, l.kubectl("version"), "Server Version: "+realKubeNext)
	}},
	{"a new CA of etcd, with two reboots", etcdCAReallyReplaced},
	{"a new CA of Talos", func(l *lab) {
		before := filepath.Join(l.t.TempDir(), "before")
		config, err := os.ReadFile(filepath.Join(l.home(), "talosconfig"))
		require.NoError(l.t, err)
		require.NoError(l.t, os.WriteFile(before, config, 0o600))
		boot := l.onNode(realNode, "read", "/proc/sys/kernel/random/boot_id")
		l.caGeneration("talos", 2)
		l.upTo("talos-rotate", true)
		connects(l)
		require.False(l.t, l.answers(before, realNode), "it takes the former talosconfig")
		require.Equal(l.t, boot, l.onNode(realNode, "read", "/proc/sys/kernel/random/boot_id"), "the machine did not reboot")
	}},
}

// cutsItselfOff gives the machine a network that is also the one from which Slipway comes, so that no answer finds its way back.
func cutsItselfOff(l *lab) {
	before := l.bootID()
	l.in("sh", "-c", "ip address add 10.99.0.5/32 dev slipway0 && ip route add "+realNode+"/32 dev slipway0 src 10.99.0.5")
	defer l.in("sh", "-c", "ip route del "+realNode+"/32 dev slipway0 && ip address del 10.99.0.5/32 dev slipway0")
	l.patchReally(map[string]any{
		"apiVersion": "v1alpha1", "kind": "DummyLinkConfig", "name": "dummy7", "addresses": []any{map[string]any{"address": "10.99.0.1/24"}},
	})
	l.fails(`infra-cp-1 is not back: it has taken its former configuration back, without DummyLinkConfig dummy7|` +
		`infra-cp-1: nobody reaches it after the change of DummyLinkConfig dummy7`)
	l.eventually("the machine answers again", func() bool {
		_, err := l.try("talosctl", "--context=infra", "--nodes="+realNode, "version")
		return err == nil
	})
	require.Equal(l.t, before, l.bootID(), "the machine has rebooted")
	require.NotContains(l.t, l.onNode(realNode, "get", "addresses"), "10.99.0.1")
	l.patchReally(map[string]any{"apiVersion": "v1alpha1", "kind": "DummyLinkConfig", "name": "dummy7"})
	l.upTo("talos-infra-cp-1-apply", true)
}

func upgradedReally(l *lab) {
	l.declare("talos", map[string]any{"version": realVersion})
	before := l.bootID()
	l.upTo("talos-upgrade", true)
	require.NotEqual(l.t, before, l.bootID())
	require.Contains(l.t, l.field("node/infra-cp-1", "{.status.nodeInfo.osImage}"), realVersion)
	l.isSchedulable()
}

func (l *lab) isSchedulable() {
	l.t.Helper()
	require.Empty(l.t, l.field("node/infra-cp-1", "{.spec.unschedulable}"))
}

// joinsAndGoes declares a worker, and then no more.
func joinsAndGoes(l *lab) {
	var without any
	editStackFile(l.t, l.stackFile("infra"), func(s settings) {
		without = s["slipway:nodePools"]
		s["slipway:nodePools"] = []any{s.pool(0), map[string]any{
			"name": "worker", "role": "worker", "cores": 2, "memory": "4GiB", "disk": "20GiB",
			"nodes": []any{map[string]any{"name": "infra-worker-1", "vmId": 1121, "mac": "BC:24:11:00:01:21", "address": "10.25.11.21"}},
		}}
	})
	before := l.bootID()
	l.upTo(machinesGate, true)
	require.Contains(l.t, l.field("node/infra-worker-1", "{.status.nodeInfo.osImage}"), realVersion)
	require.Equal(l.t, before, l.bootID(), "the control plane has rebooted")

	editStackFile(l.t, l.stackFile("infra"), func(s settings) { s["slipway:nodePools"] = without })
	l.upTo(machinesGate, true)
	require.Equal(l.t, "infra-cp-1", l.field("nodes", "{.items[*].metadata.name}"))
	require.Equal(l.t, before, l.bootID(), "the control plane has rebooted")
}

// controlPlaneJoinsAndGoes declares a second control plane, and then one again. Three are more than two cores carry without KVM.
func controlPlaneJoinsAndGoes(l *lab) {
	l.declare("lifecycle", map[string]any{"allowEvenControlPlanes": true})
	members := func() int { return strings.Count(l.onNode(realNode, "etcd", "members"), "infra-cp-") }
	before := l.bootID()
	editStackFile(l.t, l.stackFile("infra"), func(s settings) {
		s.pool(0)["nodes"] = append(s.pool(0)["nodes"].([]any),
			map[string]any{"name": "infra-cp-2", "vmId": 1112, "mac": "BC:24:11:00:01:12", "address": "10.25.11.12"})
	})
	l.upTo(machinesGate, true)
	require.Equal(l.t, 2, members())

	editStackFile(l.t, l.stackFile("infra"), func(s settings) { s.pool(0)["nodes"] = s.pool(0)["nodes"].([]any)[:1] })
	l.upTo(machinesGate, true)
	require.Equal(l.t, 1, members())
	require.Equal(l.t, "infra-cp-1", l.field("nodes", "{.items[*].metadata.name}"))
	require.Equal(l.t, before, l.bootID(), "the first control plane has rebooted")
}

// comesBackReally loses the only machine, and restores etcd on a new one.
func comesBackReally(l *lab) {
	const name = "infra-20260102T030405Z.db.age"
	uid := l.field("namespace/kube-system", "{.metadata.uid}")
	l.kubectl("create", "--namespace=default", "configmap", "before")
	identity, err := age.GenerateX25519Identity()
	require.NoError(l.t, err)
	l.takesSnapshot(filepath.Join(l.home(), "talosconfig"), identity.Recipient().String(), name)
	l.kubectl("create", "--namespace=default", "configmap", "after")

	destroyVMs(l)
	l.pulumiSays(pendingOperations, "refresh", "--clear-pending-creates", "--yes", "--skip-preview",
		"--target", "**-vm", "--target", "**-iso", "--stack", "infra")
	l.declare("lifecycle", map[string]any{"snapshots": map[string]any{"recoverFrom": name}})
	l.setSecret("infra", "snapshotIdentity", identity.String())
	l.upTo(machinesGate, true)
	require.Equal(l.t, uid, l.field("namespace/kube-system", "{.metadata.uid}"), "it is the same cluster")
	l.kubectl("get", "--namespace=default", "configmap/before")
	_, err = l.try("kubectl", "--context=admin@infra", "get", "--namespace=default", "configmap/after")
	require.Error(l.t, err, "it was written after the snapshot")
	l.pulumi("config", "rm", "--stack", "infra", "--path", "slipway:lifecycle.snapshots.recoverFrom")
	l.pulumi("config", "rm", "--stack", "infra", "slipway:snapshotIdentity")
}

// destroyedReally destroys the cluster after runs that were killed at the gate.
func destroyedReally(l *lab) {
	l.pulumi("state", "unprotect", "--all", "--yes", "--stack", "infra")
	l.pulumiSays(pendingOperations, "destroy", "--yes", "--skip-preview", "--stack", "infra")
	require.Empty(l.t, l.status().VMs)
}

func (l *lab) patchReally(controlPlane map[string]any) {
	l.t.Helper()
	l.declare("talos", map[string]any{"patches": map[string]any{"controlPlanes": []any{controlPlane}}})
}

// staysUp applies a changed configuration to the machine, which does not reboot.
func (l *lab) staysUp() {
	l.t.Helper()
	before := l.bootID()
	seen := l.upTo("talos-infra-cp-1-apply", true)
	require.Equal(l.t, "update", seen["talos-infra-cp-1-apply"])
	require.Equal(l.t, before, l.bootID(), "the machine has rebooted")
}

// bootID is the id of the machine's boot, as its kernel has it.
func (l *lab) bootID() string {
	l.t.Helper()
	return strings.TrimSpace(l.onNode(realNode, "read", "/proc/sys/kernel/random/boot_id"))
}
