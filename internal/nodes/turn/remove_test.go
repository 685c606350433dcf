package turn

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/tests/fakes/talosapitest"
)

// remove removes a node. The engine's nodes are the others, as for one that is not declared any more.
func (f *fake) remove(ctx context.Context, t *testing.T, nodes []Node, name string) error {
	node := named(nodes, name)
	others := slices.DeleteFunc(slices.Clone(nodes), func(n Node) bool { return n.Name == name })
	return f.engine(t, others).Remove(ctx, f, node)
}

func TestRemove_AControlPlaneHandsOnItsLeadershipAndLeavesEtcdBeforeItsMachineStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		f.leader = "cp-2"
		require.NoError(t, f.remove(t.Context(), t, nodes, "cp-2"))
		assert.Equal(t, []string{"cordon cp-2", "cp-1 leads etcd", "remove member 2", "shut down cp-2", "delete cp-2"}, f.log)
		assert.Equal(t, []string{"web-cp-2"}, f.ended)
		assert.Len(t, f.members, 2)
	})
}

// Once its etcd has gone, nobody could take the address before Talos's lease of it ends, a minute later.
func TestRemove_AControlPlaneLeavesTheVirtualIPBeforeItsMemberIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		f.holder = "cp-2"
		require.NoError(t, f.remove(t.Context(), t, nodes, "cp-2"))
		assert.Equal(t, []string{"cordon cp-2", "cp-2 leaves the virtual IP", "remove member 2", "shut down cp-2", "delete cp-2"}, f.log)
		assert.Equal(t, "cp-1", f.holder)
	})
}

func TestRemove_AWorkerIsDrainedAndItsMachineIsOffBeforeItsNodeObjectGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		start := time.Now()
		require.NoError(t, f.remove(t.Context(), t, nodes, "worker-1"))
		assert.Equal(t, []string{"cordon worker-1", "shut down worker-1", "delete worker-1"}, f.log)
		assert.Equal(t, []string{"web-worker-1"}, f.ended)
		assert.GreaterOrEqual(t, time.Since(start), stopTime+2*StableFor)
	})
}

func TestRemove_ALostMachineIsWaitedForAndThenNeitherDrainedNorShutDown(t *testing.T) {
	for name, want := range map[string][]string{"worker-1": {"delete worker-1"}, "cp-3": {"remove member 3", "delete cp-3"}} {
		synctest.Test(t, func(t *testing.T) {
			f, nodes := newFake(2)
			f.dies(name)
			f.onEvict = func(Pod) error { return errors.New("evicted") }
			start := time.Now()
			require.NoError(t, f.remove(t.Context(), t, nodes, name))
			assert.Equal(t, want, f.log)
			assert.InDelta(t, SilentTimeout+StableFor, time.Since(start), float64(10*time.Second))
		})
	}
}

func TestRemove_AMachineThatIsBackInTimeIsDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		require.NoError(t, f.reboot("worker-1")(t.Context()))
		require.NoError(t, f.remove(t.Context(), t, nodes, "worker-1"))
		assert.Equal(t, []string{"reboot worker-1", "cordon worker-1", "shut down worker-1", "delete worker-1"}, f.log)
		assert.Equal(t, []string{"web-worker-1"}, f.ended)
	})
}

func TestRemove_ANodeWhoseTalosAloneIsSilentIsDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		f.down["worker-1"] = errors.New("no route")
		require.NoError(t, f.remove(t.Context(), t, nodes, "worker-1"))
		assert.Equal(t, []string{"cordon worker-1", "delete worker-1"}, f.log)
		assert.Equal(t, []string{"web-worker-1"}, f.ended)
	})
}

func TestRemove_OfANodeThatTheClusterDoesNotKnowIsDoneAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		f.dies("worker-1")
		delete(f.nodes, "worker-1")
		start := time.Now()
		require.NoError(t, f.remove(t.Context(), t, nodes, "worker-1"))
		assert.Empty(t, f.log)
		assert.Less(t, time.Since(start), time.Minute)
	})
}

func TestRemove_PodsOfADeadKubeletAreNotEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		f.nodes["worker-1"], f.nodes["worker-2"], f.nodes["worker-3"] = KubeNode{}, KubeNode{}, KubeNode{}
		f.onEvict = func(Pod) error { return BlockedError{"no"} }
		start := time.Now()
		require.NoError(t, f.remove(t.Context(), t, nodes, "worker-1"))
		assert.Equal(t, []string{"cordon worker-1", "shut down worker-1", "delete worker-1"}, f.log)
		assert.Less(t, time.Since(start), time.Minute)
	})
}

func TestRemove_ABlockedDrainNamesThePodAndRemovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		f.onEvict = func(Pod) error {
			return BlockedError{"the disruption budget web needs 3 healthy pods and has 3 currently"}
		}
		err := f.remove(t.Context(), t, nodes, "worker-1")
		require.ErrorContains(t, err, "worker-1 is not removed: worker-1's drain: gave up after 10m0s (last: pod apps/web-worker-1: "+
			"the disruption budget web needs 3 healthy pods and has 3 currently)")
		assert.Equal(t, []string{"cordon worker-1", "uncordon worker-1"}, f.log)
	})
}

func TestRemove_IsRefusedIfNoOtherNodeTakesThePods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		err := f.remove(t.Context(), t, nodes, "worker-1")
		require.ErrorContains(t, err, "no node that stays takes the 1 pods of worker-1, such as apps/web-worker-1; add a node first")
		assert.Equal(t, []string{"cordon worker-1", "uncordon worker-1"}, f.log)
		f.pods["worker-1"] = f.pods["worker-1"][1:]
		require.NoError(t, f.remove(t.Context(), t, nodes, "worker-1"))
	})
}

// Otherwise all workers but one would be gone when the last one is refused.
func TestCheckPods_IsOfAllNodesTogetherThatLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(3)
		e := f.engine(t, nodes)
		f.pods["worker-1"] = nil
		require.ErrorContains(t, e.CheckPods(t.Context(), nodes[3:]...), "no node that stays takes the 1 pods of worker-2, such as "+
			"apps/web-worker-2; add a node first, and let it join, or evict them by hand: kubectl drain worker-2")
		require.NoError(t, e.CheckPods(t.Context(), nodes[4:]...), "worker-1 takes them")
		f.pods["worker-2"], f.nodes["worker-3"] = nil, KubeNode{}
		require.NoError(t, e.CheckPods(t.Context(), nodes[3:]...), "a node that is not Ready is not drained")
	})
}

func TestRemove_TouchesNothingUnlessEtcdHasAQuorumAfterwards(t *testing.T) {
	for want, breaks := range map[string]func(*fake){
		"without it, 1 of etcd's 2 members are healthy, and 2 are needed (cp-2: its Talos API does not answer: no route)": func(f *fake) {
			f.down["cp-2"] = errors.New("no route")
		},
		"etcd has no quorum: 1 of its 3 members are healthy, and 2 are needed": func(f *fake) {
			f.down["cp-1"] = errors.New("no route")
			f.machines["cp-2"].Services["etcd"] = talosapi.Service{State: "Failed"}
		},
		"the members of etcd cannot be listed: no route": func(f *fake) {
			f.down["cp-1"], f.down["cp-2"] = errors.New("no route"), errors.New("no route")
		},
		"it is the only member of etcd with a vote; add another control plane first": func(f *fake) {
			f.members = f.members[2:]
		},
		"cp-2 is a member of etcd without a vote yet": func(f *fake) {
			f.members[1].Learner = true
			f.members = append(f.members, talosapi.Member{ID: 4, Name: "stranger"})
			f.members = append(f.members[:1:1], f.members[1:3]...)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, nodes := newFake(1)
			breaks(f)
			start := time.Now()
			require.ErrorContains(t, f.remove(t.Context(), t, nodes, "cp-3"), want)
			assert.Empty(t, f.log)
			assert.Less(t, time.Since(start), SilentTimeout+SpareTimeout+time.Minute)
		})
	}
}

func TestRemove_TheOnlyControlPlaneIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(0)
		nodes, f.members = nodes[:1], f.members[:1]
		start := time.Now()
		require.ErrorContains(t, f.remove(t.Context(), t, nodes, "cp-1"), "it is the only control plane; add another one first")
		assert.Zero(t, time.Since(start))
		assert.Empty(t, f.log)
	})
}

func TestRemove_OfTwoLostControlPlanesOfFiveOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(0)
		for _, name := range []string{"cp-4", "cp-5"} {
			nodes = append(nodes, Node{Name: name, Role: nodes[0].Role, Address: talosapitest.AddressOf(name)})
			f.machines[name] = &Machine{}
			f.nodes[name] = KubeNode{}
			f.members = append(f.members, talosapi.Member{ID: uint64(len(f.members) + 1), Name: name})
			f.dies(name)
		}
		require.NoError(t, f.remove(t.Context(), t, nodes, "cp-4"))
		require.NoError(t, f.remove(t.Context(), t, append(nodes[:3:3], nodes[4]), "cp-5"))
		assert.Equal(t, []string{"remove member 4", "delete cp-4", "remove member 5", "delete cp-5"}, f.log)
	})
}

func TestRemove_OneOfTwoMembersLeavesOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		nodes, f.members = slices.Delete(nodes, 2, 3), f.members[:2]
		delete(f.nodes, "cp-3")
		require.NoError(t, f.remove(t.Context(), t, nodes, "cp-2"))
		assert.Len(t, f.members, 1)
	})
}

func TestRemove_OneOfTwoMembersIsRefusedIfItIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		nodes, f.members = slices.Delete(nodes, 2, 3), f.members[:2]
		delete(f.nodes, "cp-3")
		f.dies("cp-2")
		require.ErrorContains(t, f.remove(t.Context(), t, nodes, "cp-2"), "etcd has no quorum: 1 of its 2 members are healthy, and 2 are needed")
		assert.Empty(t, f.log)
	})
}

func TestRemove_WaitsForAControlPlaneThatStaysAndHasNotJoinedUnlessTheMachineIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		nodes = append(nodes, Node{Name: "cp-4", Role: nodes[0].Role, Address: talosapitest.AddressOf("cp-4")})
		f.down["cp-4"] = errors.New("certificate signed by unknown authority")
		require.ErrorContains(t, f.remove(t.Context(), t, nodes, "cp-3"),
			"cp-4: is no member of etcd; let it join first, by a run in which cp-3 is declared as before")
		assert.NotContains(t, f.log, "remove member 3")

		f.dies("cp-3")
		f.nodes["cp-3"] = KubeNode{}
		require.NoError(t, f.remove(t.Context(), t, nodes, "cp-3"))
		assert.Contains(t, f.log, "remove member 3")
	})
}

func TestRemove_TheMemberOfAMachineThatHasNeverStartedIsKnownByItsAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		f.members[2] = talosapi.Member{ID: 3, Addresses: []netip.Addr{talosapitest.AddressOf("cp-3")}, Learner: true}
		f.dies("cp-3")
		delete(f.nodes, "cp-3")
		require.NoError(t, f.remove(t.Context(), t, nodes, "cp-3"))
		assert.Equal(t, []string{"remove member 3"}, f.log)
	})
}

func TestRemove_GoesOnWhereItWasInterrupted(t *testing.T) {
	for name, state := range map[string]func(f *fake){
		"drained": func(f *fake) {
			f.nodes["cp-3"] = KubeNode{Ready: true, Unschedulable: true, Ours: true, Repels: true}
			f.pods["cp-3"] = nil
		},
		"no member any more": func(f *fake) {
			f.members = f.members[:2]
			f.machines["cp-3"].Services["etcd"] = talosapi.Service{State: "Failed"}
		},
		"shut down": func(f *fake) {
			f.members = f.members[:2]
			f.dies("cp-3")
		},
		"no Node object any more": func(f *fake) {
			f.members = f.members[:2]
			f.dies("cp-3")
			delete(f.nodes, "cp-3")
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, nodes := newFake(1)
			state(f)
			require.NoError(t, f.remove(t.Context(), t, nodes, "cp-3"), name)
			assert.Len(t, f.members, 2, name)
			assert.NotContains(t, f.nodes, "cp-3", name)
			assert.Error(t, f.down["cp-3"], name)
		})
	}
}

func TestRemove_AMemberThatEtcdKeepsIsNamedAndTheNodeStaysCordoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(1)
		f.refuses = errors.New("etcdserver: unhealthy cluster")
		err := f.remove(t.Context(), t, nodes, "cp-3")
		require.ErrorContains(t, err, "cp-3 is removed in part: cp-3's member of etcd: gave up after 10m0s "+
			"(last: member 3 cannot be removed: etcdserver: unhealthy cluster); fix the cause, and run up again")
		assert.Equal(t, []string{"cordon cp-3"}, f.log)
	})
}

func TestRemove_AnInterruptDuringTheDrainUncordons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		f.onEvict = func(Pod) error { return BlockedError{"no"} }
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(errors.New("interrupted")) })
		require.ErrorContains(t, f.remove(ctx, t, nodes, "worker-1"), "interrupted")
		assert.Equal(t, []string{"cordon worker-1", "uncordon worker-1"}, f.log)
	})
}

func TestRemove_AWorkerWaitsUntilTheOthersServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(3)
		f.nodes["worker-2"] = KubeNode{}
		require.ErrorContains(t, f.remove(t.Context(), t, nodes, "worker-1"),
			"worker-1 is not removed, because the cluster cannot spare it: worker-1's turn: gave up after 10m0s (last: worker-2 is not Ready")
		assert.Empty(t, f.log)
		f.dies("worker-2")
		require.NoError(t, f.remove(t.Context(), t, nodes, "worker-2"), "one that is not Ready is missing already")
	})
}

func TestRemove_AsManyWorkersLeaveAtOnceAsMayBeOutOfService(t *testing.T) {
	took := map[cluster.Share]time.Duration{}
	for _, share := range []cluster.Share{"1", "20%"} {
		synctest.Test(t, func(t *testing.T) {
			f, nodes := newFake(200)
			leave, stay := nodes[3:103], append(slices.Clone(nodes[:3]), nodes[103:]...)
			e := f.engine(t, stay)
			e.MaxUnavailable = share
			start, most := time.Now(), 0
			f.onEvict = func(Pod) error {
				e.mu.Lock()
				defer e.mu.Unlock()
				most = max(most, len(e.taking))
				return nil
			}
			require.NoError(t, e.InOrder(leave, func(node Node) error { return e.Remove(t.Context(), f, node) }))
			took[share] = time.Since(start)
			assert.Equal(t, share.Of(100), most, "nodes that were drained at once")
			assert.Len(t, f.nodes, len(stay))
		})
	}
	assert.Less(t, took["20%"], took["1"]/10)
}

// slowly is a cluster whose answer about checks takes time, in which others are asked, too.
type slowly struct{ *fake }

func (s slowly) Unmet(ctx context.Context, checks []cluster.Check) (string, error) {
	time.Sleep(10 * time.Millisecond)
	return s.fake.Unmet(ctx, checks)
}

func TestRemove_OfWorkersAtTheSameTimeCountsThoseThatAreNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(20)
		e := f.checked(t, nodes[:13], func() bool { return false })
		e.Cluster, e.MaxUnavailable = slowly{f}, "5"
		f.nodes["worker-1"] = KubeNode{}
		most := 0
		f.onEvict = func(Pod) error {
			e.mu.Lock()
			defer e.mu.Unlock()
			most = max(most, len(e.taking))
			return nil
		}
		require.NoError(t, e.InOrder(nodes[13:], func(node Node) error { return e.Remove(t.Context(), f, node) }))
		assert.Equal(t, 4, most, "nodes that were drained at once")
	})
}

func TestRemove_AfterAFailureNoOtherNodeLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(4)
		f.onEvict = func(Pod) error { return BlockedError{"no"} }
		e := f.engine(t, nodes[:4])
		e.MaxUnavailable = "2"
		err := e.InOrder(nodes[4:], func(node Node) error { return e.Remove(t.Context(), f, node) })
		require.ErrorContains(t, err, "is not removed")
		require.Len(t, f.log, 2, "one node was cordoned, and is schedulable again")
		assert.Equal(t, "un"+f.log[0], f.log[1])
		assert.Len(t, f.nodes, len(nodes))
	})
}

func TestRemove_OfASickOrLostNodeOfTheStorageAsksWhetherItsDataIsElsewhere(t *testing.T) {
	sick := map[string]func(*fake, string){
		"lost":         func(f *fake, name string) { f.dies(name) },
		"dead kubelet": func(f *fake, name string) { f.nodes[name] = KubeNode{} },
		"sick service": func(f *fake, name string) {
			f.machines[name].Services["kubelet"] = talosapi.Service{State: "Failed", Known: true}
		},
	}
	for what, sicken := range sick {
		for _, name := range []string{"worker-1", "cp-3"} {
			for _, missing := range []string{"not so: " + forGood, ""} {
				synctest.Test(t, func(t *testing.T) {
					f, nodes := newFake(2)
					others := slices.DeleteFunc(slices.Clone(nodes), func(n Node) bool { return n.Name == name })
					e := f.checked(t, others, func() bool { return true }) // because of the node
					e.Leaving, e.Settle = []cluster.Check{{Name: forGood}}, cluster.Duration{Duration: 75 * time.Second}
					f.forGood = func() string { return missing }
					sicken(f, name)
					start := time.Now()
					err := e.Remove(t.Context(), f, named(nodes, name))
					if missing == "" {
						require.NoError(t, err, what)
						assert.GreaterOrEqual(t, time.Since(start), e.Settle.Duration, "what is said of the storage may be old")
						return
					}
					require.ErrorContains(t, err, name+" is not removed, because the cluster cannot spare it", what)
					require.ErrorContains(t, err, missing)
					assert.Empty(t, f.log, what)
				})
			}
		}
	}
}

func TestRemove_ANodeWithTheOnlyCopyOfSomethingIsRefused(t *testing.T) {
	for pod, refused := range map[string]bool{
		"rook-ceph-osd-12-6c9f-x": true, "rook-ceph-osd-prepare-worker-1-x": false, "rook-ceph-osdx-1": false,
	} {
		synctest.Test(t, func(t *testing.T) {
			f, nodes := newFake(2)
			f.pods["worker-1"] = append(f.pods["worker-1"], Pod{Namespace: "rook-ceph", Name: pod, UID: "osd", Stays: true})
			e := f.engine(t, nodes)
			e.Copies = []cluster.Check{{Name: copies}}
			if err := e.Remove(t.Context(), f, nodes[3]); refused {
				require.ErrorContains(t, err, "worker-1 is not removed: it has a disk of Ceph, and not so: "+copies)
				assert.Empty(t, f.log)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

// A disk that still serves does not show what is on it alone.
func TestRemove_OfANodeOfTheStorageKeepsItsNodeObjectUntilItsDataIsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		e := f.checked(t, nodes[:4], func() bool { return true })
		e.Leaving = []cluster.Check{{Name: forGood}}
		f.nodes["worker-2"] = KubeNode{}
		f.forGood = func() string {
			if slices.Contains(f.log, "shut down worker-2") {
				return "not so: " + forGood
			}
			return ""
		}
		err := e.Remove(t.Context(), f, nodes[4])
		require.ErrorContains(t, err, "worker-2 is removed in part: Ceph without worker-2: gave up after")
		assert.Equal(t, []string{"cordon worker-2", "shut down worker-2"}, f.log, "its VM stays, and can be started")
	})
}

func TestRemove_TheNodeWithTheOnlyMonitorOfCephIsRefused(t *testing.T) {
	monitor := Pod{Namespace: "rook-ceph", Name: "rook-ceph-mon-a-6c9f", UID: "mon", Stays: true}
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		f.pods["worker-1"] = append(f.pods["worker-1"], monitor)
		require.ErrorContains(t, f.remove(t.Context(), t, nodes, "worker-1"),
			"worker-1 is not removed: it has the only monitor of Ceph; add another node")
		assert.Empty(t, f.log)
	})
	synctest.Test(t, func(t *testing.T) {
		f, nodes := newFake(2)
		f.pods["worker-1"] = append(f.pods["worker-1"], monitor)
		f.pods["cp-2"] = append(f.pods["cp-2"], Pod{Namespace: "rook-ceph", Name: "rook-ceph-mon-b-77d1", UID: "mon-b", Stays: true})
		require.NoError(t, f.remove(t.Context(), t, nodes, "worker-1"))
	})
}
