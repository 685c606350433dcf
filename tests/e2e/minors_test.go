//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMinors_AClusterGoesFromOneMinorReleaseToTheNext takes a cluster under load from Talos 1.12 to 1.14 and from Kubernetes 1.35 to 1.37,
// in the order in which they go with each other. It needs the tools kube-1.35 and kube-1.37: make minors.
func TestMinors_AClusterGoesFromOneMinorReleaseToTheNext(t *testing.T) {
	l := labOfShape(t, "minors", func(s settings) {
		s.withoutProviders()
		s.set("gitops", map[string]any{"enabled": false})
		s.pool(1)["nodes"] = s.pool(1)["nodes"].([]any)[:1]
		s.set("talos", map[string]any{"version": "v1.12.7"})
		// The budget of the load is kept only if its pods find another node while the worker is away.
		s.set("kubernetes", map[string]any{"version": "v1.35.7", "allowSchedulingOnControlPlanes": true})
	})
	comesUp(l)
	l.runsVersions("v1.12.7", "v1.35.7")
	load := startLoad(l)
	load.during(l, []change{
		{"minor releases are not skipped, and pairs fit", skippedMinorRefused},
		{"Talos 1.13, whose first boot fails", talosRollsBackOnce},
		{"Kubernetes 1.36", upgraded("v1.13.9", "v1.36.4")},
		{"the manifests are those of Talos", manifestsAreThoseOfTalos},
		{"Talos 1.14", upgraded("v1.14.1", "v1.36.4")},
		{"Kubernetes 1.37", upgraded("v1.14.1", "v1.37.2")},
		{"no minor release back", downgradesRefused},
	})
}

// runsVersions checks which versions all nodes run, and that the API servers are the programs of theirs.
func (l *lab) runsVersions(talos, kubernetes string) {
	l.t.Helper()
	itsTalos, kubelet, servers := l.versions()
	require.Equal(l.t, []string{talos, kubernetes, kubernetes}, []string{itsTalos, kubelet, servers})
	require.Contains(l.t, l.kubectl("get", "--raw=/version"), `"gitVersion": "`+kubernetes+`"`, "is its program built? make minors")
}

// declaresVersions declares both versions.
func (l *lab) declaresVersions(talos, kubernetes string) {
	l.t.Helper()
	l.declare("talos", map[string]any{"version": talos})
	l.declare("kubernetes", map[string]any{"version": kubernetes})
}

// upgraded makes one up to the declared versions.
func upgraded(talos, kubernetes string) func(*lab) {
	return func(l *lab) {
		l.declaresVersions(talos, kubernetes)
		l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
		l.runsVersions(talos, kubernetes)
	}
}

func skippedMinorRefused(l *lab) {
	before := l.boots()
	l.declaresVersions("v1.14.1", "v1.35.7")
	l.fails("talos.version: v1.14.1 skips minor releases after v1.12.7, which runs on")
	l.declaresVersions("v1.13.9", "v1.37.2")
	l.fails("kubernetes.version: v1.37.2 does not go with Talos v1.13.9")
	l.declaresVersions("v1.12.7", "v1.36.4")
	l.fails("kubernetes.version: v1.36.4 does not go with Talos v1.12.7")
	l.declaresVersions("v1.12.7", "v1.35.7")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.runsVersions("v1.12.7", "v1.35.7")
	require.Equal(l.t, before, l.boots())
}

// talosRollsBackOnce upgrades Talos. The new one does not boot on the first node, which ends the run; the next run goes on. Then a skipped
// minor release of Kubernetes is refused, which the newer Talos would run.
func talosRollsBackOnce(l *lab) {
	l.declaresVersions("v1.13.9", "v1.35.7")
	before := l.boots()
	l.must("fault", "upgrade-fails", "infra-cp-1")
	l.fails("infra-cp-1 is not back, and stays cordoned: Talos rolled back: the machine has rebooted and runs v1.12.7 again, not v1.13.9")
	l.must("fault", "--off", "upgrade-fails", "infra-cp-1")
	for name, boot := range l.boots() {
		require.Equal(l.t, name == "infra-cp-1", boot != before[name], name)
	}
	upgraded("v1.13.9", "v1.35.7")(l)
	l.allRebooted(before)
	l.declaresVersions("v1.14.1", "v1.37.2")
	l.fails("kubernetes.version: v1.37.2 skips minor releases after v1.35.7, which runs")
	l.declaresVersions("v1.13.9", "v1.35.7")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	l.runsVersions("v1.13.9", "v1.35.7")
}

func downgradesRefused(l *lab) {
	l.declaresVersions("v1.14.1", "v1.36.4")
	l.fails("kubernetes.version: v1.36.4 is older than v1.37.2, which runs")
	l.declaresVersions("v1.13.9", "v1.36.4")
	l.fails("talos.version: v1.13.9 is older than v1.14.1, which runs on")
	upgraded("v1.14.1", "v1.37.2")(l)
}

// manifestsAreThoseOfTalos asks talosctl what it would change. The newest one that can be built here is of 1.13, and knows no later Talos.
// The objects are of Talos 1.12: it would only note in each that the object belongs to the inventory that Talos keeps since 1.13.
func manifestsAreThoseOfTalos(l *lab) {
	upgrade := l.in("talosctl", "--context=infra", "--nodes=10.25.11.11", "upgrade-k8s", "--dry-run", "--to=v1.36.4")
	require.Contains(l.t, upgrade, "updating kubelet to version")
	_, manifests, compared := strings.Cut(upgrade, "updating manifests (dry run)\n")
	require.True(l.t, compared, upgrade)
	require.Contains(l.t, manifests, "ClusterRole/system:talos-nodes")
	for _, line := range strings.Split(manifests, "\n") {
		switch {
		case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, " < configured "),
			strings.HasPrefix(line, " < unchanged "):
		case strings.HasPrefix(line, "+"), strings.HasPrefix(line, "-"), strings.HasPrefix(line, " < "):
			require.Regexp(l.t, `^\+ +(annotations:|config.k8s.io/owning-inventory: talos-bootstrap-manifests-inventory)$`, line, manifests)
		}
	}
}

// TestMinors_AnAPIServerThatDoesNotStartGoesBack declares what Kubernetes 1.35 takes, 1.36 refuses, and no table of Slipway knows.
func TestMinors_AnAPIServerThatDoesNotStartGoesBack(t *testing.T) {
	l := onKubernetes135(t, "goes-back", "apiServer")
	l.declaresVersions("v1.14.1", "v1.36.4")
	l.fails("kube-apiserver on infra-cp-1: .*declare the former kubernetes.version with the setting corrected")
	l.declare("talos", map[string]any{"patches": map[string]any{}})
	upgraded("v1.14.1", "v1.35.7")(l)
	upgraded("v1.14.1", "v1.36.4")(l)
}

// TestMinors_ASchedulerThatDoesNotStartIsLeftToItsCorrectedConfiguration declares the same of a scheduler: the next up finds it not
// running, and goes on to the configurations, which correct it and bring the kubelets.
func TestMinors_ASchedulerThatDoesNotStartIsLeftToItsCorrectedConfiguration(t *testing.T) {
	l := onKubernetes135(t, "is-left", "scheduler")
	l.declaresVersions("v1.14.1", "v1.36.4")
	l.fails(`(?s)kube-scheduler on infra-cp-1: .*correct its settings.*minCompatibilityVersion version 1\.32 is not between`)
	l.declare("talos", map[string]any{"patches": map[string]any{}})
	out := l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra")
	require.Contains(t, out, "kube-scheduler on infra-cp-1, which is changed already")
	l.runsVersions("v1.14.1", "v1.36.4")
	l.pulumi("up", "--yes", "--skip-preview", "--stack", "infra", "--expect-no-changes")
}

// onKubernetes135 is a lab with a cluster of one control plane and one worker, with an argument of a component that 1.36 refuses.
func onKubernetes135(t *testing.T, name, component string) *lab {
	l := labOfShape(t, name, func(s settings) {
		s.withoutProviders()
		s.set("gitops", map[string]any{"enabled": false})
		s.pool(0)["nodes"] = s.pool(0)["nodes"].([]any)[:1]
		s.pool(1)["nodes"] = s.pool(1)["nodes"].([]any)[:1]
		wrong := map[string]any{component: map[string]any{"extraArgs": map[string]any{"min-compatibility-version": "1.32"}}}
		s.set("talos", map[string]any{
			"version": "v1.14.1", "patches": map[string]any{"controlPlanes": []any{map[string]any{"cluster": wrong}}},
		})
		s.set("kubernetes", map[string]any{"version": "v1.35.7"})
	})
	comesUp(l)
	return l
}
