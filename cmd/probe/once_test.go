package probe

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/tests/fakes/fakecluster"
)

// firstOf returns a function that is true at the first call with each value that has a prefix. It is false for /readyz, whose answer "not
// ready" is an answer.
func firstOf(prefix string) func(string) bool {
	var mu sync.Mutex
	seen := map[string]bool{}
	return func(value string) bool {
		mu.Lock()
		defer mu.Unlock()
		first := !seen[value]
		seen[value] = true
		return first && strings.HasPrefix(value, prefix) && value != "GET readyz"
	}
}

// A busy API server may answer late or not at all. A look must have seen everything all the same.
func TestProbe_ThatLooksOnceAsksAgainWhatWasNotAnswered(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"GET", "WATCH", "POST"} {
		t.Run("handover "+verb, func(t *testing.T) {
			t.Parallel()
			kube := fakecluster.NewKube(t)
			putFlux(t, kube)
			kube.Failing(firstOf(verb))
			_, report, progress := execute(t, "", "handover", "--kubeconfig", saved(t, "kubeconfig", kube.Config), "--once")
			assert.Equal(t, health.Open, report.Outcome, progress)
			assert.Len(t, report.Results, 6)
		})
		t.Run("workloads "+verb, func(t *testing.T) {
			t.Parallel()
			kube := fakecluster.NewKube(t)
			putDNS(t, kube, podReady)
			kube.Serves(certificates)
			kube.Failing(firstOf(verb))
			_, report, progress := execute(t, "", "workloads", "--kubeconfig", saved(t, "kubeconfig", kube.Config), "--release",
				"kube-system/coredns", "--once")
			assert.Equal(t, health.Open, report.Outcome, progress)
			kube.Failing(firstOf(verb))
			_, report, progress = execute(t, workloadsSpec(t, kube, 20*time.Second, certificate()), "workloads")
			assert.Equal(t, health.Open, report.Outcome, progress)
			assert.NotContains(t, progress, "internalerror", "a sample is tried again before it is said to be refused")
		})
		t.Run("gate "+verb, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.kube.Failing(firstOf(verb))
			assertOpen(t, r)
		})
	}
	t.Run("gate, Talos", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		for _, member := range members {
			r.talos.Change(member.Address, func(n *fakecluster.TalosNode) {
				calls := 0
				n.Failing = func() bool { calls++; return calls == 1 }
			})
		}
		assertOpen(t, r)
	})
	t.Run("gate, agents", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		answer, first := fakecluster.Agents(members, ""), firstOf("")
		r.kube.OnExec(func(pod string, command []string) (string, error) {
			if first(pod + strings.Join(command, " ")) {
				return "", errors.New("busy")
			}
			return answer(pod, command)
		})
		assertOpen(t, r)
	})
}

func TestHandover_ThatLooksOnceEndsAtOnceWithoutFlux(t *testing.T) {
	t.Parallel()
	kube := fakecluster.NewKube(t)
	code, report, progress := execute(t, "", "handover", "--kubeconfig", saved(t, "kubeconfig", kube.Config), "--once", "--timeout", "2m")
	assert.Equal(t, exitUnhealthy, code)
	assert.Less(t, time.Duration(report.Waited), time.Minute, progress)
	kube.Serves(instances, gitSources, helmSources, ociSources, buckets, kustomizations, releases, fakecluster.Deployments,
		fakecluster.StatefulSets, fakecluster.DaemonSets, fakecluster.Pods)
	_, report, progress = execute(t, "", "handover", "--kubeconfig", saved(t, "kubeconfig", kube.Config), "--once", "--timeout", "2m")
	assert.Less(t, time.Duration(report.Waited), time.Minute, progress)
	assert.Contains(t, report.Summaries[4], "waits: there is no root Kustomization")
}

func TestGate_ThatLooksOnceEndsAtOnceWhateverIsMissing(t *testing.T) {
	t.Parallel()
	for name, breakIt := range map[string]func(*testing.T, *rig){
		"everything": func(t *testing.T, r *rig) {
			r.kube, r.talos = fakecluster.NewKube(t), fakecluster.NewTalos(t)
			r.spec.Kubeconfig, r.spec.Talosconfig = r.kube.Config, r.talos.Config
		},
		"API server":     func(_ *testing.T, r *rig) { r.kube.GoAway() },
		"node":           func(_ *testing.T, r *rig) { r.kube.Delete(fakecluster.Nodes, "", members[1].Name) },
		"Ready node":     func(t *testing.T, r *rig) { fakecluster.PutNode(t, r.kube, members[1], "False") },
		"agent":          func(t *testing.T, r *rig) { r.kube.Delete(fakecluster.Pods, "kube-system", "cilium-"+members[1].Name) },
		"Ready agent":    func(t *testing.T, r *rig) { fakecluster.PutAgent(t, r.kube, members[1], false) },
		"agents' answer": func(_ *testing.T, r *rig) { r.kube.OnExec(nil) },
		"Talos": func(_ *testing.T, r *rig) {
			r.talos.Change(members[0].Address, func(n *fakecluster.TalosNode) { n.Err = errors.New("down") })
		},
		"etcd": func(_ *testing.T, r *rig) {
			r.talos.Change(members[0].Address, func(n *fakecluster.TalosNode) { delete(n.Services, "etcd"); n.Members = nil })
		},
		"ranges": func(_ *testing.T, r *rig) {
			r.talos.Change(members[0].Address, func(n *fakecluster.TalosNode) { n.PodCIDRs = nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			breakIt(t, r)
			kubeconfig, talosconfig, spec := r.files(t)
			_, report, progress := execute(t, "", "gate", "--spec", spec, "--kubeconfig", kubeconfig, "--talosconfig", talosconfig, "--once",
				"--timeout", "2m")
			assert.Less(t, time.Duration(report.Waited), time.Minute, progress)
		})
	}
}

// assertOpen looks once and expects that everything holds.
func assertOpen(t *testing.T, r *rig) {
	t.Helper()
	kubeconfig, talosconfig, spec := r.files(t)
	_, report, progress := execute(t, "", "gate", "--spec", spec, "--kubeconfig", kubeconfig, "--talosconfig", talosconfig, "--once")
	assert.Equal(t, health.Open, report.Outcome, progress)
	assert.Empty(t, report.Problems)
}
