//go:build e2e

package e2e

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestChain creates, changes and destroys both stacks in one lab. Each part continues with the clusters of the part before, because
// the creation of a cluster takes a minute. A part that fails ends the test.
func TestChain(t *testing.T) {
	l := startLab(t, "chain")
	for _, part := range []struct {
		name string
		run  func(*testing.T, *lab)
	}{
		{"AFailingProxmoxTaskStopsUpInItsOwnWords", taskFails},
		{"AnUpKilledAnywhereIsCompletedByTheNext", killed},
		{"AKubeletThatIsDownStopsUpAtTheGate", kubeletDown},
		{"RefusedGitCredentialsStopTheHandover", gitRefused},
		{"FluxHasAppliedThisRevision", fluxApplied},
		{"EachClusterSeesTheOther", meshConnected},
		{"AnotherUpChangesNothing", noChanges},
		{"RefreshFindsNoDrift", noDrift},
		{"AnObjectWithoutARecordTakesLaterChanges", recordLost},
		{"SecretsSyncFrom1Password", itemsSynced},
		{"WhatConnectRefusesStopsUpAndIsNamed", connectRefuses},
		{"ARotatedSealingKeyLeavesTheOldOneReadable", sealingKeyRotated},
		{"TheProbeByHandNamesACrashingAgent", agentCrashes},
		{"TheGateOutlivesAnAPIServerThatGoesAway", apiServerGone},
		{"TalosctlWorks", talosctl},
		{"AnotherProxmoxNodeMovesNoMachine", nodeAdded},
		{"AChangedHostMovesItsMachine", hostsChanged},
		{"AProxmoxNodeUnderMaintenanceIsEmptyUntilItsEnd", hostEmptied},
		{"AMachineMovedByHandIsNotReplaced", movedByHand},
		{"ASecondCheckoutIsRefusedWithoutEffect", secondCheckout},
		{"OneOfThreeControlPlanesIsRebuilt", oneRebuilt},
		{"NoSecretIsInPlainText", noSecrets},
		{"DestroyLeavesNothing", destroyed},
	} {
		if !t.Run(part.name, func(t *testing.T) {
			l.t = t
			part.run(t, l)
		}) {
			return
		}
	}
}

func taskFails(t *testing.T, l *lab) {
	const why = "lvcreate 'pve/vm-1111-disk-0' error: volume group has insufficient free space"
	l.must("fault", "proxmox-task-fails", "qmcreate", "--detail", why)
	out, err := l.try("pulumi", "--non-interactive", "--color=never", "up", "--yes", "--skip-preview", "--stack", "infra")
	require.Error(t, err)
	require.Contains(t, out, why)
	require.Empty(t, l.status().VMs)
	l.must("fault", "--off", "proxmox-task-fails", "qmcreate")
}

// killed kills `pulumi up` after each step, restarts it, and lets the last run finish.
func killed(t *testing.T, l *lab) {
	const stack = "infra"
	exists := func(argv ...string) func() bool {
		return func() bool {
			_, err := l.try(append([]string{"kubectl", "--context=admin@infra", "get"}, argv...)...)
			return err == nil
		}
	}
	for _, point := range []struct {
		what    string
		reached func() bool
	}{
		{"a VM was created", func() bool { return len(l.status().VMs) > 0 }},
		{"a node took its configuration", func() bool {
			return slices.ContainsFunc(l.status().VMs, func(vm struct{ Name, Cluster, Stage, Status string }) bool { return vm.Cluster != "" })
		}},
		{"etcd was bootstrapped", func() bool { return hasProcess(l.status(), "etcd") }},
		{"Helm had begun with Cilium", exists("secret", "-n", "kube-system", "sh.helm.release.v1.cilium.v1")},
		{"the handover had begun", exists("fluxinstance", "-n", "flux-system", "flux")},
	} {
		up := l.up(stack)
		up.reaches(point.what, point.reached)
		up.kill(stack)
		t.Logf("killed when %s", point.what)
	}
	l.pulumiSays(pendingOperations, "up", "--yes", "--skip-preview", "--stack", stack)
	l.pulumiSays(pendingOperations, "refresh", "--clear-pending-creates", "--yes", "--skip-preview", "--stack", stack)
}

func kubeletDown(t *testing.T, l *lab) {
	const node = "apps-worker-2"
	l.must("fault", "kubelet-down", node)
	l.pulumi("config", "set", "--stack", "apps", "--path", "slipway:readiness.timeout", "60s")
	out, err := l.try("pulumi", "--non-interactive", "--color=never", "up", "--yes", "--skip-preview", "--stack", "apps")
	require.Error(t, err, "up went on without a kubelet")
	require.Regexp(t, node+`.*kubelet|kubelet.*`+node, out, "the gate names node and service")

	_, err = l.try("kubectl", "--context=admin@apps", "get", "namespace", "flux-system")
	require.Error(t, err, "a resource that waits for the gate exists")
	for _, urn := range urns(t, l, "apps") {
		for _, later := range []string{"slipway:secrets:SecretsFoundation$", "slipway:gitops:GitOpsHandover$"} {
			require.NotContains(t, urn, later)
		}
	}
	l.must("fault", "--off", "kubelet-down", node)
}

// gitRefused continues after kubeletDown: the repaired cluster passes the gate.
func gitRefused(t *testing.T, l *lab) {
	l.must("fault", "git-refused")
	l.pulumi("config", "rm", "--stack", "apps", "--path", "slipway:readiness.timeout")
	l.pulumi("config", "set", "--stack", "apps", "--path", "slipway:gitops.timeout", "60s")
	out, err := l.try("pulumi", "--non-interactive", "--color=never", "up", "--yes", "--skip-preview", "--stack", "apps")
	require.Error(t, err, "up went on without Git")
	require.Regexp(t, `GitRepository.*flux-system`, out, "the object that is stuck is named")
	l.must("fault", "--off", "git-refused")
	l.pulumi("config", "rm", "--stack", "apps", "--path", "slipway:gitops.timeout")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "apps")
}

func fluxApplied(t *testing.T, l *lab) {
	head, err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Output()
	require.NoError(t, err)
	for stack, objects := range map[string][]string{
		"infra": {"ciliumloadbalancerippool/infra", "deployment/podinfo"},
		"apps":  {"ciliumloadbalancerippool/apps", "deployment/podinfo"},
	} {
		applied := l.in("kubectl", "--context=admin@"+stack, "get", "kustomization", "-n", "flux-system", "flux-system",
			"-o", "jsonpath={.status.lastAppliedRevision}")
		require.Equal(t, "refs/heads/main@sha1:"+strings.TrimSpace(string(head)), applied)
		for _, object := range objects {
			l.in("kubectl", "--context=admin@"+stack, "get", "--namespace=podinfo", object)
		}
		require.Contains(t, l.pulumi("stack", "output", "--stack", stack, "--json"), strings.TrimSpace(string(head)))
	}
}

func meshConnected(t *testing.T, l *lab) {
	require.Equal(t, "connected", l.sees("apps", "infra"))
	require.Equal(t, "connected", l.sees("infra", "apps"), "its own gate has found the peer absent")
}

func noChanges(t *testing.T, l *lab) {
	for _, stack := range []string{"infra", "apps"} {
		inTime(t, "a run of nothing in "+stack, runOfNothing, 3, func() time.Duration {
			began := time.Now()
			l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", stack)
			return time.Since(began)
		})
		l.pulumi("preview", "--diff", "--expect-no-changes", "--stack", stack)
	}
}

// recordLost makes the state that a run leaves which is killed between the creation of an object and its record. The next run creates the
// object under another field manager; a change after it must not conflict with the former one.
func recordLost(t *testing.T, l *lab) {
	const stack = "infra"
	settings := slices.DeleteFunc(urns(t, l, stack), func(urn string) bool { return !strings.HasSuffix(urn, "::gitops-settings") })
	require.Len(t, settings, 1)
	l.pulumi("state", "delete", settings[0], "--target-dependents", "--yes", "--stack", stack)
	require.NotContains(t, strings.Join(urns(t, l, stack), " "), ":FluxInstance::", "it depends on the settings")
	up := []string{"up", "--yes", "--skip-preview", "--stack", stack}
	l.pulumi(up...)
	for _, change := range []string{"set", "rm"} {
		argv := []string{"config", change, "--stack", stack, "--path", "slipway:gitops.settings.OBJECT_WITHOUT_A_RECORD"}
		interval := []string{"config", change, "--stack", stack, "--path", "slipway:gitops.interval"}
		if change == "set" {
			argv, interval = append(argv, "text"), append(interval, "2m")
		}
		l.pulumi(argv...)
		l.pulumi(interval...)
		l.pulumi(up...)
	}
}

func noDrift(t *testing.T, l *lab) {
	for _, stack := range []string{"infra", "apps"} {
		l.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes", "--stack", stack)
		l.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", "--stack", stack)
	}
}

// gate runs the probe by hand against the infra cluster, with the credentials that commands in the lab find.
func (l *lab) gate(args ...string) (string, error) {
	l.t.Helper()
	checkout, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(l.t, err)
	const script = `cd "$0" && exec go run ./cmd/slipway-probe gate --kubeconfig "$KUBECONFIG" --talosconfig "$TALOSCONFIG" "$@"`
	return l.try(append([]string{"sh", "-c", script, checkout}, args...)...)
}

func agentCrashes(t *testing.T, l *lab) {
	const node = "infra-worker-1"
	l.must("fault", "cilium-agent-crash", node)
	l.eventually("the agent crashes", func() bool {
		out, err := l.try("kubectl", "--context=admin@infra", "get", "pods", "-A", "-l", "k8s-app=cilium", "--field-selector=spec.nodeName="+node)
		return err == nil && strings.Contains(out, "CrashLoopBackOff")
	})
	out, err := l.gate("--timeout", "10s")
	require.Error(t, err)
	require.Regexp(t, node+`[^\n]*CrashLoopBackOff|CrashLoopBackOff[^\n]*`+node, out)
	l.must("fault", "--off", "cilium-agent-crash", node)
	out, err = l.gate("--timeout", "2m")
	require.NoError(t, err, "%s", out)
}

func apiServerGone(t *testing.T, l *lab) {
	args := []string{"--timeout", "2m"}
	for name, address := range map[string]string{
		"infra-cp-1": "11", "infra-cp-2": "12", "infra-cp-3": "13", "infra-worker-1": "21", "infra-worker-2": "22",
	} { // nodes are given by flags, because the API server that lists them is down
		role := "worker"
		if strings.Contains(name, "cp") {
			role = "controlplane"
		}
		args = append(args, "--node", name+","+role+",10.25.11."+address)
	}
	l.must("fault", "api-server-gone", "infra", "--for", "8s")
	out, err := l.gate(args...)
	require.NoError(t, err, "%s", out)
	require.Contains(t, out, "refused", "the gate reports what it waited for")
}

func talosctl(t *testing.T, l *lab) {
	const node = "10.25.11.11"
	ask := func(args ...string) string {
		return l.in(append([]string{"talosctl", "--context=infra", "--nodes=" + node}, args...)...)
	}
	require.Contains(t, ask("version"), "v1.14.6")
	require.Contains(t, ask("services"), "kubelet")
	members := ask("etcd", "members")
	nodes := ask("get", "members")
	for _, name := range []string{"infra-cp-1", "infra-cp-2", "infra-cp-3"} {
		require.Contains(t, members, name)
		require.Contains(t, nodes, name)
	}
	ask("dmesg")
	ask("logs", "kubelet")
	ask("health", "--wait-timeout=60s")
}

func destroyed(t *testing.T, l *lab) {
	for _, stack := range []string{"infra", "apps"} {
		out, err := l.try("pulumi", "--non-interactive", "--color=never", "destroy", "--yes", "--skip-preview", "--stack", stack)
		require.Error(t, err, "destroy deleted protected machines")
		require.Contains(t, out, "protected")
		l.pulumi("state", "unprotect", "--all", "--yes", "--stack", stack)
		l.pulumi("destroy", "--yes", "--skip-preview", "--stack", stack)
		require.Empty(t, slices.DeleteFunc(urns(t, l, stack), func(urn string) bool { return strings.Contains(urn, "pulumi:pulumi:Stack") }))
	}
	require.Eventually(t, func() bool {
		s := l.status()
		return len(s.VMs)+len(s.Processes)+len(s.Volumes) == 0
	}, 15*time.Second, 250*time.Millisecond, "something is left of the destroyed stacks: %+v", l.status())
}

func hasProcess(s status, name string) bool {
	return slices.ContainsFunc(s.Processes, func(p struct{ Name, Cluster string }) bool { return strings.Contains(p.Name, name) })
}
