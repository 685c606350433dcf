package upgrade

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/nodes/versions"
	"github.com/slipway-platform/slipway/tests/fakes/snapshottest"
)

// only returns the lines of a log that begin with a word.
func only(log []string, word string) []string {
	return slices.DeleteFunc(slices.Clone(log), func(line string) bool { return !strings.HasPrefix(line, word) })
}

func TestRun_UpgradesTalosNodeByNodeAndThenKubernetesComponentByComponent(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	etcd := snapshottest.New(t)
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.etcd, spec.Snapshots.Folder = etcd, "snapshots"
		report, err := f.run(t, spec)
		require.NoError(t, err)
		all := []string{"cp-1", "cp-2", "cp-3", "worker-1", "worker-2"}
		want := []string{"snapshot of cp-1"}
		for _, node := range all {
			want = append(want, "cordon "+node, "upgrade "+node+" to "+spec.Installers[node], "uncordon "+node)
		}
		for _, component := range versions.StaticPods {
			for _, node := range all[:3] {
				if component == versions.APIServer {
					want = append(want, "virtual IP leaves "+node)
				}
				want = append(want, fmt.Sprintf("%s on %s", component, node))
			}
		}
		for i, node := range all {
			if i < 3 {
				want = append(want, "virtual IP leaves "+node)
			}
			want = append(want, "kubelet on "+node)
		}
		assert.Equal(t, want, f.log)
		assert.Equal(t, all, report.Talos)
		assert.Len(t, report.Kubernetes, 3*3+5)
		assert.FileExists(t, report.Snapshot)
		assert.Empty(t, f.skew)
		assert.Zero(t, f.lost)
		assert.Zero(t, f.silent, "the API server behind the virtual IP was restarted")
		assert.Contains(t, report.Sentence(), "upgraded to Talos v1.12.7 on 5 nodes and Kubernetes v1.35.8")
	})
}

func TestRun_RetriesKeepTheSnapshotFromBeforeTheUpgradeUntilItHasSucceeded(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", home)
	require.NoError(t, os.MkdirAll(home+"/slipway/snapshots", 0o700))
	etcd := snapshottest.New(t)
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.etcd, spec.Snapshots.Folder, spec.Snapshots.Keep = etcd, "snapshots", 1
		before := home + "/slipway/snapshots/" + spec.Cluster + "-19990101T000000Z.db"
		require.NoError(t, os.WriteFile(before, etcd, 0o600))
		f.onUpgrade = func(*fakeNode) error { return errors.New("no image") }
		_, err := f.run(t, spec)
		require.Error(t, err)
		assert.FileExists(t, before)

		f.onUpgrade = nil
		report, err := f.run(t, spec)
		require.NoError(t, err)
		assert.NoFileExists(t, before)
		assert.FileExists(t, report.Snapshot)
	})
}

func TestRun_UpgradesAllTheSameIfTheVirtualIPStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.stays = errors.New("the configuration is refused")
		_, err := f.run(t, spec)
		require.NoError(t, err)
		assert.Equal(t, 2, f.silent, "with the control plane that has it: for its API server, and for its kubelet")
		for _, node := range f.nodes {
			assert.Equal(t, spec.Kubernetes, node.kube.Kubelet)
		}
	})
}

func TestRun_ChangesNothingWhereAllIsAsDeclared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.current(spec)
		start := time.Now()
		report, err := f.run(t, spec)
		require.NoError(t, err)
		assert.Empty(t, f.log)
		assert.Zero(t, time.Since(start))
		assert.Equal(t, "all nodes run Talos v1.12.7 and Kubernetes v1.35.8", report.Sentence())
	})
}

func TestRun_OnANewClusterDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		for i, node := range f.nodes {
			node.answer = answer{}
			if i >= 3 { // workers that join later do not exist
				node.down = errors.New("no route")
			}
		}
		report, err := f.run(t, spec)
		require.NoError(t, err)
		assert.True(t, report.New)
		assert.Empty(t, f.log)
	})
}

// The third one is configured only after the upgrade.
func TestRun_RebootsNoneOfTwoMembersOfEtcdWhileAThirdControlPlaneWaitsForItsConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.node("cp-3").answer = answer{}
		start := time.Now()
		_, err := f.run(t, spec)
		require.EqualError(t, err, "nothing was changed: etcd needs both of cp-1, cp-2, and cp-3 gets its configuration after this step; "+
			"take back the version, extensions or lifecycle.bootedSince for one run, so that it joins first")
		assert.Empty(t, f.log)
		assert.Zero(t, time.Since(start))
	})
}

func TestRun_WaitsForTheMachinesOfANewClusterToBoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		for i, node := range f.nodes {
			node.answer, node.down = answer{}, errors.New("no route")
			time.AfterFunc(time.Duration(i+1)*time.Minute*2, func() { // the second and the third are slow
				f.mu.Lock()
				defer f.mu.Unlock()
				node.down = nil
			})
		}
		start := time.Now()
		report, err := f.run(t, spec)
		require.NoError(t, err)
		assert.True(t, report.New)
		assert.InDelta(t, 6, time.Since(start).Minutes(), 1, "all control planes, and no worker")
	})
}

func TestRun_StopsIfNoControlPlaneAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		for _, node := range f.nodes {
			node.down = errors.New("no route")
		}
		start := time.Now()
		_, err := f.run(t, spec)
		require.ErrorContains(t, err, "no control plane answers, so it is not known what runs: cp-1: its Talos API does not answer: no route")
		assert.Equal(t, silentTimeout, time.Since(start))
	})
}

func TestRun_AddsAMachineWithoutAnUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.current(spec)
		f.node("worker-2").answer, f.node("worker-2").exists = answer{}, false
		report, err := f.run(t, spec)
		require.NoError(t, err)
		assert.False(t, report.New)
		assert.Empty(t, f.log)
	})
}

func TestRun_UpgradesWhileControlPlanesThatAreNewWaitForTheirConfigurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		for _, name := range []string{"cp-2", "cp-3"} {
			f.node(name).answer, f.node(name).exists, f.node(name).runs = answer{}, false, nil
		}
		report, err := f.run(t, spec)
		require.NoError(t, err)
		assert.Equal(t, []string{"kube-apiserver on cp-1", "kube-controller-manager on cp-1", "kube-scheduler on cp-1", "kubelet on cp-1",
			"kubelet on worker-1", "kubelet on worker-2"}, report.Kubernetes)
		assert.NotContains(t, f.log, "virtual IP leaves cp-1") // nobody would take it
	})
}

// Once the API servers have the new release, the former one cannot be declared any more, and cp-3 is configured after this step only.
func TestRun_UpgradesKubernetesWhileEtcdLacksAControlPlaneThatWaitsForItsConfiguration(t *testing.T) {
	for _, exists := range []bool{true, false} { // its machine was lost, or it joins for the first time
		synctest.Test(t, func(t *testing.T) {
			f, spec := newFake()
			spec.Talos = "v1.12.6"
			missing := f.node("cp-3")
			missing.answer, missing.runs, missing.exists, missing.kube = answer{}, nil, exists, turn.KubeNode{}
			report, err := f.run(t, spec)
			require.NoError(t, err)
			for _, node := range f.nodes {
				assert.Equal(t, node != missing, slices.Contains(report.Kubernetes, "kubelet on "+node.Name), node.Name)
			}
			assert.Empty(t, f.skew)
		})
	}
}

// What etcd does not need may be what the upgrade fixes, and each of two control planes would wait for the other.
func TestRun_UpgradesTheKubeletsOfControlPlanesWhileThoseOfOthersAreNotHealthy(t *testing.T) {
	for _, names := range [][]string{{"worker-2"}, {"cp-1", "cp-2"}} {
		synctest.Test(t, func(t *testing.T) {
			f, spec := newFake()
			spec.Talos, spec.MaxUnavailable = "v1.12.6", "2"
			for _, name := range names {
				f.node(name).heals = spec.Kubernetes
			}
			report, err := f.run(t, spec)
			require.NoError(t, err, names)
			for _, node := range f.nodes {
				assert.Contains(t, report.Kubernetes, "kubelet on "+node.Name, names)
			}
		})
	}
}

func TestRun_UpgradesKubernetesWhileAControlPlaneIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		spec.Talos, spec.Skip = "v1.12.6", cluster.SkippedNodes{{Name: "cp-3", Reason: "waits for a disk"}}
		spec.Nodes = slices.Delete(spec.Nodes, 2, 3)
		f.node("cp-3").down, f.node("cp-3").kube.Ready = errors.New("no route to host"), false
		report, err := f.run(t, spec)
		require.NoError(t, err)
		assert.Contains(t, report.Kubernetes, "kubelet on cp-2")
	})
}

func TestRun_ChangesNothingWhileTheMachineOfAWorkerThatIsMissedWaitsForItsConfiguration(t *testing.T) {
	for what, current := range map[string]func(*Spec){
		"of Kubernetes": func(spec *Spec) { spec.Talos = "v1.12.6" }, "of Talos": func(spec *Spec) { spec.Kubernetes = "v1.34.2" },
	} {
		synctest.Test(t, func(t *testing.T) {
			f, spec := newFake()
			current(spec)
			f.node("worker-2").answer, f.node("worker-2").kube.Ready = answer{}, false
			_, err := f.run(t, spec)
			require.EqualError(t, err, "nothing was changed: worker-2 has another machine, which gets its configuration after this step, and no "+
				"other worker can be spared until then; take back the version, extensions or lifecycle.bootedSince for one run, so that it joins "+
				"first, or raise its generation", what)
			assert.Empty(t, f.log)

			spec.MaxUnavailable = "2"
			_, err = f.run(t, spec)
			require.NoError(t, err, what)
		})
	}
}

func TestRun_LeavesNoNodeBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.node("worker-2").down = errors.New("no route")
		_, err := f.run(t, spec)
		require.ErrorContains(t, err, "nothing was changed, because these nodes would be left behind: "+
			"worker-2: its Talos API does not answer: no route")
		assert.Empty(t, f.log)
	})
}

func TestRun_ADeadNodeOfACurrentClusterIsNotInTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.current(spec)
		f.node("worker-2").down = errors.New("no route")
		report, err := f.run(t, spec)
		require.NoError(t, err)
		assert.Equal(t, []string{"worker-2"}, report.Silent)
		assert.Equal(t, "the nodes that answer run Talos v1.12.7 and Kubernetes v1.35.8; no answer from worker-2", report.Sentence())
	})
}

func TestRun_DoesNotSucceedWhileASilentNodeHasRunAnotherVersion(t *testing.T) {
	for what, kube := range map[string]turn.KubeNode{
		"kubelet v1.35.7 on Talos (v1.12.7)": {Kubelet: "v1.35.7", System: "Talos (v1.12.7)"},
		"kubelet v1.35.8 on Talos (v1.12.6)": {Kubelet: "v1.35.8", System: "Talos (v1.12.6)"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, spec := newFake()
			f.current(spec)
			f.node("worker-2").kube, f.node("worker-2").down = kube, errors.New("no route")
			_, err := f.run(t, spec)
			require.ErrorContains(t, err, "nothing was changed, because these nodes would be left behind: worker-2: its Talos API does not "+
				"answer: no route, and it has run "+what+"; fix or remove them first")
		})
	}
}

func TestRun_StopsAtANodeWhoseTalosRolledBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.onUpgrade = func(node *fakeNode) error {
			if node.Name == "cp-2" {
				node.version = "v1.12.6"
			}
			return nil
		}
		_, err := f.run(t, spec)
		require.ErrorContains(t, err, "cp-2 is not back")
		require.ErrorContains(t, err, "Talos rolled back: the machine has rebooted and runs v1.12.6 again, not v1.12.7")
		assert.Len(t, only(f.log, "upgrade"), 2, "no other node is upgraded")
	})
}

func TestRun_UpgradesForOtherExtensions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.current(spec)
		spec.Schematic = "bb"
		for node := range spec.Installers {
			spec.Installers[node] = "factory/installer/bb:v1.12.7"
		}
		report, err := f.run(t, spec)
		require.NoError(t, err)
		assert.Len(t, report.Talos, 5)
		assert.Empty(t, report.Kubernetes)
	})
}

// A run that is killed changes nothing any more. The next one finds what it left.
func TestRun_FinishesWhatAKilledRunBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for at := 5 * time.Second; at < 20*time.Minute; at += 17 * time.Second {
			f, spec := newFake()
			ctx, cancel := context.WithTimeoutCause(t.Context(), at, errors.New("killed"))
			_, err := run(ctx, spec, &killable{fake: f, killed: ctx}, logger{t})
			cancel()
			again, err2 := f.run(t, spec)
			require.NoError(t, err2, "killed after %s: %v", at, err)
			time.Sleep(restartTime) // a component whose image was set right before the kill
			assert.Empty(t, f.left(t), "killed after %s", at)
			for _, node := range f.nodes {
				assert.Equal(t, "v1.12.7", node.running.Talos)
				assert.Equal(t, "v1.35.8", node.kube.Kubelet)
			}
			assert.Empty(t, f.skew)
			assert.Zero(t, f.lost, "killed after %s", at)
			third, err := f.run(t, spec)
			require.NoError(t, err)
			assert.Empty(t, third.Talos, "the second run finished: %s", again.Sentence())
		}
	})
}

func TestRun_FinishesAnInstallationByItsReboot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.onInstalled = func(*fakeNode) error { return errors.New("the connection was lost") }
		_, err := f.run(t, spec)
		require.ErrorContains(t, err, "cp-1: the connection was lost")
		assert.Empty(t, f.left(t))
		f.log, f.onInstalled = nil, nil
		report, err := f.run(t, spec)
		require.NoError(t, err)
		assert.Equal(t, []string{"cordon cp-1", "reboot cp-1", "uncordon cp-1", "cordon cp-2"}, f.log[:4], "it is not installed again")
		assert.Len(t, only(f.log, "upgrade"), 4)
		assert.Len(t, report.Talos, 5)
	})
}

// Otherwise the node would boot the other version some day, unseen until then.
func TestRun_InstallsTheFormerVersionAgainWhereAKilledRunHasInstalledAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.current(spec)
		f.node("cp-2").version, f.node("cp-2").image = "v1.13.9", "factory/installer/aa:v1.13.9"
		report, err := f.run(t, spec)
		require.NoError(t, err)
		assert.Equal(t, []string{"cp-2"}, report.Talos)
		assert.Equal(t, spec.Talos, f.node("cp-2").running.Talos)
	})
}

func TestRun_RebootsIntoTheDeclaredVersionOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.node("cp-1").version, f.node("cp-1").image = "v1.12.5", "factory/installer/aa:v1.12.5"
		_, err := f.run(t, spec)
		require.NoError(t, err)
		assert.Contains(t, f.log, "upgrade cp-1 to "+spec.Installers["cp-1"])
		assert.Empty(t, only(f.log, "reboot"))
	})
}

// killable is a cluster that a killed run cannot change any more, not even to clean up.
type killable struct {
	*fake
	killed context.Context
}

func (k *killable) Uncordon(ctx context.Context, node string) error {
	if k.killed.Err() != nil {
		return errors.New("killed")
	}
	return k.fake.Uncordon(ctx, node)
}

func TestRun_RefusesAChangeOfCiliumThatIsNotSafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.current(spec)
		f.cilium, spec.Cilium = []string{"v1.18.7"}, versions.Cilium{Version: "1.18.6"}
		_, err := f.run(t, spec)
		require.ErrorContains(t, err, "nothing was changed: cilium.version: 1.18.6 is older than 1.18.7, which runs")

		spec.Cilium.Version = "1.19.0"
		policy := unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "web", "namespace": "shop"},
			"spec":     map[string]any{"ingress": []any{map[string]any{"fromRequires": []any{}}}},
		}}
		f.objects = map[string][]unstructured.Unstructured{"ciliumnetworkpolicies": {policy}}
		_, err = f.run(t, spec)
		require.EqualError(t, err, "nothing was changed: cilium.version: ciliumnetworkpolicies shop/web: with Cilium 1.19, fromRequires is "+
			"removed; write fromEndpoints with all labels")
		f.objects = nil
		_, err = f.run(t, spec)
		require.NoError(t, err)
	})
}

func TestRun_NamesRemovedAPIsThatAreInUse(t *testing.T) {
	const metrics = `# HELP apiserver_requested_deprecated_apis [STABLE] Gauge of deprecated APIs that have been requested
apiserver_requested_deprecated_apis{group="flowcontrol",removed_release="1.35",resource="flowschemas",subresource="",version="v1beta3"} 1
apiserver_requested_deprecated_apis{group="",removed_release="",resource="componentstatuses",subresource="",version="v1"} 1
apiserver_requested_deprecated_apis{group="a",removed_release="1.36",resource="later",subresource="",version="v1"} 1
`
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.metrics = metrics
		_, err := f.run(t, spec)
		require.ErrorContains(t, err, "nothing was changed: clients use APIs that Kubernetes v1.35.8 does not have: "+
			"flowschemas of flowcontrol/v1beta3 (removed in 1.35); ")
		assert.NotContains(t, err.Error(), "later")
		assert.Empty(t, f.log)
		spec.AllowRemovedAPIs = true
		_, err = f.run(t, spec)
		require.NoError(t, err)
	})
}

func TestRun_WaitsForANodeThatReboots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, spec := newFake()
		f.node("cp-1").stage = "rebooting"
		time.AfterFunc(time.Minute, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.node("cp-1").stage = "running"
		})
		_, err := f.run(t, spec)
		require.NoError(t, err)
	})
}
