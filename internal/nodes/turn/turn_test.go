package turn

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
)

func (f *fake) change(nodes []Node, name string) Change {
	return Change{Node: named(nodes, name), Drains: true, Reboots: true, Act: f.reboot(name)}
}

func TestTake_CordonsDrainsChangesAwaitsAndUncordons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		start := time.Now()
		require.NoError(t, f.engine(t, nodes).Take(t.Context(), f.change(nodes, "worker-1")))
		assert.Equal(t, []string{"cordon worker-1", "reboot worker-1", "uncordon worker-1"}, f.log)
		assert.Equal(t, []string{"web-worker-1"}, f.ended, "pods of DaemonSets stay")
		assert.GreaterOrEqual(t, time.Since(start), bootTime+2*StableFor)
	})
}

func TestTake_ControlPlanesNeverGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(0)
		e := f.engine(t, nodes)
		results := make(chan error)
		for _, node := range nodes {
			c := f.change(nodes, node.Name)
			act := c.Act
			c.Act = func(ctx context.Context) error {
				f.with(func() { assert.Empty(t, f.down, "another control plane is away") })
				return act(ctx)
			}
			go func() { results <- e.Take(t.Context(), c) }()
		}
		for range nodes {
			require.NoError(t, <-results)
		}
		assert.Len(t, f.log, 9)
	})
}

func TestTake_WaitsWhileAnotherControlPlaneIsNotHealthy(t *testing.T) {
	for want, breaks := range map[string]func(*fake){
		"cp-2: its Talos API does not answer: no route": func(f *fake) { f.down["cp-2"] = errors.New("no route") },
		"cp-2: the machine is rebooting":                func(f *fake) { f.machines["cp-2"].Stage = "rebooting" },
		"cp-2: its etcd is Preparing": func(f *fake) {
			f.machines["cp-2"].Services["etcd"] = talosapi.Service{State: "Preparing"}
		},
		"cp-2: its etcd is not healthy": func(f *fake) {
			f.machines["cp-2"].Services["etcd"] = talosapi.Service{State: talosapi.Running}
		},
		"cp-2: an earlier run has left it cordoned, and kubelet is not healthy": func(f *fake) {
			f.nodes["cp-2"] = KubeNode{Ready: true, Unschedulable: true, Ours: true, Boot: "1"}
			f.machines["cp-2"].Services["kubelet"] = talosapi.Service{State: talosapi.Running, Known: true}
		},
		"2 of etcd's 5 members are healthy, and 3 are needed": func(f *fake) {
			f.members = append(f.members, talosapi.Member{ID: 8, Name: "gone-1"}, talosapi.Member{ID: 9, Name: "gone-2"})
		},
		"cp-3 is a member of etcd without a vote yet": func(f *fake) { f.members[2].Learner = true },
	} {
		synctest.Test(t, func(t *testing.T) {
			f, nodes := newFake(1)
			breaks(f)
			start := time.Now()
			err := f.engine(t, nodes).Take(t.Context(), f.change(nodes, "cp-1"))
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, "cp-1 is not changed, because the cluster cannot spare it")
			assert.Equal(t, SpareTimeout, time.Since(start))
			assert.Empty(t, f.log)
		})
	}
}

func TestTake_AControlPlaneWithoutEtcdIsChangedToRepairIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		f.down["cp-2"] = errors.New("no route")
		f.machines["cp-1"].Services["etcd"] = talosapi.Service{State: "Failed"}
		c := f.change(nodes, "cp-1")
		c.Act = func(ctx context.Context) error {
			f.with(func() {
				f.machines["cp-1"].Services["etcd"] = talosapi.Service{State: talosapi.Running, Known: true, Healthy: true}
			})
			return f.reboot("cp-1")(ctx)
		}
		require.NoError(t, f.engine(t, nodes).Take(t.Context(), c))
	})
}

func TestTake_OneOfTwoMembersIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(0)
		nodes, f.members = nodes[:2], f.members[:2]
		start := time.Now()
		err := f.engine(t, nodes).Take(t.Context(), f.change(nodes, "cp-1"))
		require.ErrorContains(t, err, "etcd has two members and needs both; declare a third control plane first")
		assert.Zero(t, time.Since(start))
	})
}

func TestTake_OneOfTwoMembersWaitsForADeclaredThirdAndSaysHowItJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(0)
		joined := append([]talosapi.Member{}, f.members...)
		f.members = f.members[:2]
		delete(f.nodes, "cp-3")
		err := f.engine(t, nodes).Take(t.Context(), f.change(nodes, "cp-1"))
		require.ErrorContains(t, err, "etcd has two members and needs both, and cp-3 has not joined")
		require.ErrorContains(t, err, "take back what changes the control planes for one run")

		time.AfterFunc(time.Minute, func() { f.members = joined; f.nodes["cp-3"] = KubeNode{Ready: true, Boot: "1"} })
		require.NoError(t, f.engine(t, nodes).Take(t.Context(), f.change(nodes, "cp-1")))
	})
}

func TestTake_TheOnlyControlPlaneIsChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(0)
		nodes, f.members = nodes[:1], f.members[:1]
		f.nodes = map[string]KubeNode{"cp-1": {Ready: true, Boot: "1"}}
		require.NoError(t, f.engine(t, nodes).Take(t.Context(), f.change(nodes, "cp-1")))
		assert.Empty(t, f.ended, "no other node takes its pods")
	})
}

func TestTake_KeepsAtMostMaxUnavailableWorkersOutOfService(t *testing.T) {
	for name, test := range map[string]struct {
		most    cluster.Share
		other   KubeNode
		refused string
	}{
		"all others serve":          {"1", KubeNode{Ready: true}, ""},
		"another is not Ready":      {"1", KubeNode{}, "worker-2 is not Ready (maxUnavailable is 1)"},
		"a person has cordoned one": {"1", KubeNode{Ready: true, Unschedulable: true}, "worker-2 is cordoned by hand"},
		"another is left cordoned": {"1", KubeNode{Unschedulable: true, Ours: true},
			"worker-2: an earlier run has left it cordoned, and its Node object is not Ready"},
		"two may be out of service": {"2", KubeNode{}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, nodes := newFake(3)
			f.nodes["worker-2"] = test.other
			e := f.engine(t, nodes)
			e.MaxUnavailable = test.most
			err := e.Take(t.Context(), f.change(nodes, "worker-1"))
			if test.refused == "" {
				require.NoError(t, err, name)
				return
			}
			require.ErrorContains(t, err, test.refused, name)
		})
	}
}

func TestTake_AWorkerThatHasNotJoinedIsNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		delete(f.nodes, "worker-2")
		require.NoError(t, f.engine(t, nodes).Take(t.Context(), f.change(nodes, "worker-1")))
	})
}

func TestTake_ANodeThatAPersonCordonedStaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		f.nodes["worker-1"] = KubeNode{Ready: true, Unschedulable: true, Boot: "1"}
		require.NoError(t, f.engine(t, nodes).Take(t.Context(), f.change(nodes, "worker-1")))
		assert.Equal(t, []string{"reboot worker-1"}, f.log)
		assert.True(t, f.nodes["worker-1"].Unschedulable)
	})
}

func TestTake_ANodeThatAnEarlierRunCordonedIsUncordoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		f.nodes["worker-1"] = KubeNode{Ready: true, Unschedulable: true, Ours: true, Boot: "1"}
		require.NoError(t, f.engine(t, nodes).Take(t.Context(), f.change(nodes, "worker-1")))
		assert.Equal(t, []string{"reboot worker-1", "uncordon worker-1"}, f.log)
	})
}

func TestTake_ABlockedDrainNamesPodAndBudgetAndChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		f.onEvict = func(Pod) error {
			return BlockedError{"the disruption budget web needs 3 healthy pods and has 3 currently"}
		}
		start := time.Now()
		engine := f.engine(t, nodes)
		err := engine.Take(t.Context(), f.change(nodes, "worker-1"))
		require.ErrorContains(t, err, "pod apps/web-worker-1: the disruption budget web needs 3 healthy pods and has 3 currently")
		assert.Equal(t, []string{"cordon worker-1", "uncordon worker-1"}, f.log)
		assert.GreaterOrEqual(t, time.Since(start), engine.DrainTimeout.Duration)
	})
}

func TestTake_WaitsAfterTheDrainUntilVolumesAreDetached(t *testing.T) {
	for stays, says := range map[time.Duration]string{
		time.Minute: "", time.Hour: "worker-1: worker-1's volumes: gave up after 5m0s (last: has a disk scsi1)",
	} {
		synctest.Test(t, func(t *testing.T) {
			f, nodes := newFake(2)
			c, gone := f.change(nodes, "worker-1"), time.Now().Add(stays)
			c.Drained = func(context.Context) string {
				assert.Equal(t, []string{"web-worker-1"}, f.ended, "the pods end first")
				if time.Now().Before(gone) {
					return "has a disk scsi1"
				}
				return ""
			}
			err := f.engine(t, nodes).Take(t.Context(), c)
			if says == "" {
				require.NoError(t, err)
				assert.Equal(t, []string{"cordon worker-1", "reboot worker-1", "uncordon worker-1"}, f.log)
				return
			}
			require.EqualError(t, err, says)
			assert.Equal(t, []string{"cordon worker-1", "uncordon worker-1"}, f.log)
		})
	}
}

func TestTake_EvictsAgainOnceTheBudgetAllowsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		free := time.Now().Add(time.Minute)
		f.onEvict = func(Pod) error {
			if time.Now().Before(free) {
				return BlockedError{"no"}
			}
			return nil
		}
		require.NoError(t, f.engine(t, nodes).Take(t.Context(), f.change(nodes, "worker-1")))
		assert.Equal(t, []string{"web-worker-1"}, f.ended)
	})
}

func TestTake_LeavesPodsThatComeDuringTheDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		f.onEvict = func(pod Pod) error { // a pod that tolerates everything is created again on the same node
			f.pods["worker-1"] = append(f.pods["worker-1"], Pod{Namespace: "apps", Name: "again", UID: pod.UID + "'"})
			return nil
		}
		require.NoError(t, f.engine(t, nodes).Take(t.Context(), f.change(nodes, "worker-1")))
		assert.Equal(t, []string{"web-worker-1"}, f.ended)
	})
}

func TestTake_ANodeThatDoesNotComeBackStaysCordonedAndIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		c := f.change(nodes, "worker-1")
		c.Act = func(context.Context) error {
			f.with(func() { f.down["worker-1"] = errors.New("no route") })
			return nil
		}
		err := f.engine(t, nodes).Take(t.Context(), c)
		require.ErrorContains(t, err, "worker-1 is not back, and stays cordoned")
		require.ErrorContains(t, err, "its Talos API does not answer: no route")
		assert.Equal(t, []string{"cordon worker-1"}, f.log)
	})
}

func TestTake_IsNotBackBefore(t *testing.T) {
	for want, breaks := range map[string]func(*fake){
		"it has not rebooted yet": func(f *fake) { f.machines["cp-1"].Boot = "1" },
		"the machine is booting":  func(f *fake) { f.machines["cp-1"].Stage = "booting" },
		"the machine is booting, and kubelet is Waiting (Error running X)": func(f *fake) {
			f.machines["cp-1"].Stage = "booting"
			f.machines["cp-1"].Services["kubelet"] = talosapi.Service{State: "Waiting", Message: "Error running X"}
		},
		"kubelet is not healthy": func(f *fake) {
			f.machines["cp-1"].Services["kubelet"] = talosapi.Service{State: talosapi.Running, Known: true}
		},
		"etcd is Preparing":            func(f *fake) { f.machines["cp-1"].Services["etcd"] = talosapi.Service{State: "Preparing"} },
		"its Node object is not Ready": func(f *fake) { f.nodes["cp-1"] = KubeNode{Unschedulable: true, Ours: true, Boot: "2"} },
		"it has no Node object":        func(f *fake) { delete(f.nodes, "cp-1") },
		"its kubelet has not reported since the reboot": func(f *fake) {
			f.nodes["cp-1"] = KubeNode{Ready: true, Unschedulable: true, Ours: true, Boot: "1"}
		},
		"it is no member of etcd":                   func(f *fake) { f.members = f.members[1:] },
		"it is a member of etcd without a vote yet": func(f *fake) { f.members[0].Learner = true },
	} {
		synctest.Test(t, func(t *testing.T) {
			f, nodes := newFake(1)
			c := f.change(nodes, "cp-1")
			c.Act = func(context.Context) error {
				f.with(func() {
					f.machines["cp-1"].Boot = "2"
					at := f.nodes["cp-1"]
					at.Boot = "2"
					f.nodes["cp-1"] = at
					breaks(f)
				})
				return nil
			}
			require.ErrorContains(t, f.engine(t, nodes).Take(t.Context(), c), want)
		})
	}
}

func TestTake_EndsAtOnceWhenTheCheckSaysThatWaitingIsInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		c := f.change(nodes, "cp-1")
		c.Check = func(_ context.Context, _ string, machine Machine, _ KubeNode) (string, error) {
			if machine.Version == "v1.12.6" {
				return "", errors.New("Talos rolled back")
			}
			return "", nil
		}
		start := time.Now()
		require.ErrorContains(t, f.engine(t, nodes).Take(t.Context(), c), "Talos rolled back")
		assert.Less(t, time.Since(start), time.Minute)
	})
}

func TestTake_ARefusedChangeLeavesTheNodeSchedulable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		c := f.change(nodes, "cp-1")
		c.Act = func(context.Context) error { return errors.New("invalid image") }
		require.ErrorContains(t, f.engine(t, nodes).Take(t.Context(), c), "cp-1: invalid image")
		assert.Equal(t, []string{"cordon cp-1", "uncordon cp-1"}, f.log)
	})
}

func TestTake_AnInterruptDuringTheDrainUncordons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		f.onEvict = func(Pod) error { return BlockedError{"no"} }
		f.nodes["cp-2"] = KubeNode{Ready: true}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(errors.New("interrupted")) })
		require.ErrorContains(t, f.engine(t, nodes).Take(ctx, f.change(nodes, "worker-1")), "interrupted")
		assert.Equal(t, []string{"cordon worker-1", "uncordon worker-1"}, f.log)
	})
}

func TestRelease_UncordonsOnlyWhatAnEarlierRunCordoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(3)
		f.nodes["worker-1"] = KubeNode{Ready: true, Unschedulable: true, Ours: true}
		f.nodes["worker-2"] = KubeNode{Ready: true, Unschedulable: true}
		f.nodes["worker-3"] = KubeNode{Ready: true, Ours: true} // a person has uncordoned it
		require.NoError(t, f.engine(t, nodes).Release(t.Context()))
		assert.Equal(t, []string{"uncordon worker-1", "forget worker-3"}, f.log)
		assert.True(t, f.nodes["worker-2"].Unschedulable)
		assert.False(t, f.nodes["worker-3"].Ours)
	})
}

func TestRelease_WaitsForANodeThatStillBoots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		f.nodes["worker-1"] = KubeNode{Ready: true, Unschedulable: true, Ours: true, Boot: "1"}
		require.NoError(t, f.reboot("worker-1")(t.Context()))
		start := time.Now()
		require.NoError(t, f.engine(t, nodes).Release(t.Context()))
		assert.GreaterOrEqual(t, time.Since(start), bootTime)
		assert.Equal(t, "uncordon worker-1", f.log[len(f.log)-1])
	})
}

func TestEngine_SaysWhatItWaitsForOnceForEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		e := f.engine(t, nodes)
		var lines []string
		e.Say = func(format string, args ...any) { lines = append(lines, strings.TrimSpace(format)) }
		require.NoError(t, e.Take(t.Context(), f.change(nodes, "cp-1")))
		assert.Less(t, len(lines), 10)
	})
}

func TestTake_AQuietChangeLeavesTheNodeSchedulable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		acted := false
		c := Change{Node: named(nodes, "cp-1"), Quiet: true, Drains: true, Act: func(context.Context) error { acted = true; return nil }}
		require.NoError(t, f.engine(t, nodes).Take(t.Context(), c))
		assert.True(t, acted)
		assert.Empty(t, f.log)
		assert.Empty(t, f.ended)
	})
}

func TestRestarted_WaitsForAnotherEventOfTheServiceAndForStaticPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		event := func(seconds int64) {
			f.with(func() {
				f.machines["cp-1"].Services["cri"] = talosapi.Service{State: talosapi.Running, Known: true, Healthy: true, Since: time.Unix(seconds, 0)}
			})
		}
		event(1)
		before, err := f.Machine(t.Context(), named(nodes, "cp-1"))
		require.NoError(t, err)
		c := Change{Node: named(nodes, "cp-1"), Quiet: true, Check: Restarted("cri", before), Act: func(context.Context) error {
			time.AfterFunc(10*time.Second, func() {
				event(2)
				f.with(func() { f.machines["cp-1"].Unmet = map[string]string{"staticPods": "kube-apiserver-cp-1 not ready"} })
			})
			time.AfterFunc(15*time.Second, func() { f.with(func() { f.machines["cp-1"].Unmet = nil }) })
			return nil
		}}
		start := time.Now()
		require.NoError(t, f.engine(t, nodes).Take(t.Context(), c))
		assert.InDelta(t, 15+2*StableFor.Seconds(), time.Since(start).Seconds(), 3)
		assert.Empty(t, f.log, "it is neither cordoned nor drained")
	})
}

func TestRestarted_DoesNotWaitForEverForARestartThatIsNotNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		before, err := f.Machine(t.Context(), named(nodes, "worker-1"))
		require.NoError(t, err)
		c := Change{Node: named(nodes, "worker-1"), Quiet: true, Check: Restarted("cri", before),
			Act: func(context.Context) error { return nil }}
		start := time.Now()
		require.NoError(t, f.engine(t, nodes).Take(t.Context(), c))
		assert.InDelta(t, RestartTimeout.Seconds(), time.Since(start).Seconds(), 10)
	})
}

func TestFollows_WaitsForTheHealthOfTheKubeletAndForStaticPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		kubelet := func(service talosapi.Service) { f.with(func() { f.machines["cp-1"].Services["kubelet"] = service }) }
		problem := "kube-apiserver has not started again with its new arguments and files"
		c := Change{Node: named(nodes, "cp-1"), Quiet: true, Awaits: Nothing, Act: func(context.Context) error {
			kubelet(talosapi.Service{State: talosapi.Running})
			time.AfterFunc(10*time.Second, func() { kubelet(talosapi.Service{State: talosapi.Running, Known: true, Healthy: true}) })
			time.AfterFunc(25*time.Second, func() { f.with(func() { problem = "" }) })
			return nil
		}}
		c.Check = Follows(func(context.Context, Node) (string, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			return problem, nil
		}, c.Node)
		start := time.Now()
		require.NoError(t, f.engine(t, nodes).Take(t.Context(), c))
		assert.InDelta(t, 25+StableFor.Seconds(), time.Since(start).Seconds(), 3)
	})
}

func TestTake_ANodeThatWasNotReadyNeedNotBeReadyAfterwards(t *testing.T) {
	for _, unready := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f, nodes := newFake(1)
			f.nodes["cp-1"] = KubeNode{}
			c := Change{Node: named(nodes, "cp-1"), Quiet: true, Awaits: Nothing, Unready: unready, Act: func(context.Context) error { return nil }}
			err := f.engine(t, nodes).Take(t.Context(), c)
			assert.Equal(t, unready, err == nil, "%v", err)
		})
	}
}

func TestTake_NamesWhatANodeThatIsNotBackHasWrittenLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		f.lines = map[string][]string{"worker-1": {"log of kubelet:", "| unknown flag: --what"}}
		change := f.change(nodes, "worker-1")
		change.Act = func(context.Context) error {
			f.with(func() { f.machines["worker-1"].Services["kubelet"] = talosapi.Service{State: "Waiting"} })
			return nil
		}
		err := f.engine(t, nodes).Take(t.Context(), change)
		require.ErrorContains(t, err, "run up again\n  log of kubelet:\n  | unknown flag: --what")
	})
}
