package talos_test

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	clusterres "github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	configres "github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/slipway-platform/slipway/lab/talos"
)

func TestBootstrap_HappensOnceAndOnControlPlanesOnly(t *testing.T) {
	w := newWorld(t)
	w.install(configmachine.TypeControlPlane, 11)
	w.install(configmachine.TypeWorker, 21)
	w.eventually("etcd waits for it", func() bool { return w.service(11, "etcd").State == "Preparing" && w.service(21, "apid").Healthy })
	require.Zero(t, w.kube.running(), "no Kubernetes before bootstrap")
	err := w.admin(21).Bootstrap(w.ctx, &machine.BootstrapRequest{})
	require.Equal(t, codes.FailedPrecondition, client.StatusCode(err))
	require.ErrorContains(t, err, "bootstrap can only be performed on a control plane node")

	w.bootstrap(11)
	w.stage(21, talos.StageRunning)
	err = w.admin(11).Bootstrap(w.ctx, &machine.BootstrapRequest{})
	require.Equal(t, codes.AlreadyExists, client.StatusCode(err))
	require.Equal(t, 1, w.kube.running())
}

func TestEtcd_ControlPlanesJoinOneByOneUntilAllVote(t *testing.T) {
	w := newWorld(t)
	w.cluster(3, 1)
	require.ElementsMatch(t, []string{node(11), node(12), node(13)}, etcdMembers(w, 12))
	require.True(t, w.kube.answers(w.addr(11)))
	require.True(t, w.kube.answers(w.addr(12)))
	require.True(t, w.kube.answers(w.addr(13)))
	require.False(t, w.kube.answers(w.addr(21)))
	st, err := w.admin(13).EtcdStatus(w.ctx)
	require.NoError(t, err)
	require.False(t, st.Messages[0].MemberStatus.IsLearner)
	_, err = w.admin(21).EtcdStatus(w.ctx)
	require.Equal(t, codes.Unimplemented, client.StatusCode(err))
}

func TestEtcd_LosesAndRegainsItsQuorum(t *testing.T) {
	w := newWorld(t)
	guests := map[byte]func(){}
	for _, h := range []byte{11, 12, 13} {
		g, hw := w.install(configmachine.TypeControlPlane, h)
		guests[h] = func() { g.PowerOff(); _ = hw }
	}
	w.bootstrap(11)
	for _, h := range []byte{11, 12, 13} {
		w.stage(h, talos.StageRunning)
	}
	guests[13]()
	require.False(t, w.kube.suspended(), "two of three are a majority")
	guests[12]()
	w.eventually("no quorum", w.kube.suspended)
	_, err := w.admin(11).EtcdMemberList(w.ctx, &machine.EtcdMemberListRequest{})
	require.ErrorContains(t, err, "no leader")
	w.eventually("nobody holds the VIP", func() bool { return !w.links.has(w.vip()) })
}

func TestVIP_IsHeldByOneControlPlaneAndMoves(t *testing.T) {
	w := newWorld(t)
	g, hw := w.install(configmachine.TypeControlPlane, 11)
	w.install(configmachine.TypeControlPlane, 12)
	w.install(configmachine.TypeControlPlane, 13)
	w.stage(11, talos.StageBooting)
	require.False(t, w.links.has(w.vip()), "nobody holds it before bootstrap")
	w.bootstrap(11)
	for _, h := range []byte{11, 12, 13} {
		w.stage(h, talos.StageRunning)
	}
	w.eventually("it answers", func() bool { return w.kube.answers(w.vip()) && w.links.has(w.vip()) })
	require.True(t, w.status(11).VIP)
	g.PowerOff()
	require.False(t, w.links.has(w.vip()), "it goes with its holder")
	w.eventually("another one holds it", func() bool { return w.kube.answers(w.vip()) && (w.status(12).VIP || w.status(13).VIP) })
	w.site.PowerOn(hw)
	w.stage(11, talos.StageRunning)
	require.False(t, w.status(11).VIP, "it does not move back")
}

func TestVIP_IsAmongTheAddressesOfItsHolderInTheOrderOfTheConfiguration(t *testing.T) {
	w := newWorld(t)
	lower := w.addr(9) // below the virtual IP
	w.install(configmachine.TypeControlPlane, 11)
	w.install(configmachine.TypeControlPlane, 12, func(c *v1alpha1.Config) {
		c.MachineConfig.MachineFeatures.FeatureNodeAddressSortAlgorithm = "v2"
		c.MachineConfig.MachineNetwork.NetworkInterfaces[0].DeviceAddresses = []string{ //nolint:staticcheck // as Slipway has it
			netip.PrefixFrom(w.addr(12), 24).String(), netip.PrefixFrom(lower, 24).String()}
	})
	w.install(configmachine.TypeControlPlane, 13) // keeps the quorum
	w.bootstrap(11)
	w.stage(12, talos.StageRunning)
	w.stage(13, talos.StageRunning)
	vip := netip.PrefixFrom(w.vip(), 32)
	holds := func(host byte, name string, want ...netip.Addr) {
		w.eventually("all nodes know it", func() bool {
			for _, from := range []byte{11, 12} {
				for _, m := range listed[*clusterres.Member](w, from) {
					if m.TypedSpec().Hostname == name && !slices.Equal(m.TypedSpec().Addresses, want) {
						return false
					}
				}
			}
			return true
		})
		for _, a := range listed[*clusterres.Affiliate](w, host) {
			if a.TypedSpec().Hostname == name {
				require.Equal(t, want, a.TypedSpec().Addresses)
			}
		}
		addresses := resource[*network.NodeAddress](w, host, network.NamespaceName, network.NodeAddressCurrentID).TypedSpec()
		require.Equal(t, slices.Contains(want, w.vip()), slices.Contains(addresses.Addresses, vip))
	}
	w.eventually("it has a holder", func() bool { return w.status(11).VIP })
	holds(11, node(11), w.vip(), w.addr(11))
	holds(12, node(12), lower, w.addr(12))
	require.NoError(t, w.admin(11).Reboot(w.ctx))
	w.eventually("the other one holds it", func() bool { return w.status(12).VIP })
	w.stage(11, talos.StageRunning)
	holds(12, node(12), w.vip(), lower, w.addr(12))
	holds(11, node(11), w.addr(11))
	_, err := w.admin(11).Version(client.WithNode(w.ctx, w.vip().String()))
	require.NoError(t, err, "a node is reached by the virtual IP, too")
}

func TestVIP_MovesAtOnceFromANodeThatResigns(t *testing.T) {
	w := newWorld(t, func(c *talos.Config) { c.Latency.VIPFailover = time.Hour }) // of a lease that expires
	w.cluster(3, 0)
	w.eventually("it answers", func() bool { return w.status(11).VIP && w.kube.answers(w.vip()) })
	_, err := w.admin(11).ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{
		Data: w.config(configmachine.TypeControlPlane, 11, func(c *v1alpha1.Config) {
			c.MachineConfig.MachineNetwork.NetworkInterfaces[0].DeviceVIPConfig = nil //nolint:staticcheck // as Slipway has it
		}), Mode: machine.ApplyConfigurationRequest_TRY, TryModeTimeout: durationpb.New(time.Second),
	})
	require.NoError(t, err)
	w.eventually("its configuration names none", func() bool { return w.status(12).VIP && !w.status(11).VIP && w.kube.answers(w.vip()) })
	kept := resource[*configres.MachineConfig](w, 11, configres.NamespaceName, configres.PersistentID).Provider()
	require.NotNil(t, kept.Machine().Network().Devices()[0].VIPConfig(), "the disk has the former configuration")
	w.eventually("the former configuration is back", func() bool { return strings.Contains(w.activeConfig(11), "vip:") })
	require.False(t, w.status(11).VIP, "the address stays where it is")
	require.NoError(t, w.admin(12).Reboot(w.ctx))
	w.eventually("it stops its pods", func() bool { return w.status(11).VIP })
}

func TestVIP_IsAwayUntilTheLeaseOfAHolderWithoutPowerHasExpired(t *testing.T) {
	w := newWorld(t, func(c *talos.Config) { c.Latency.VIPFailover = time.Hour }) // of a lease that expires
	holder, _ := w.install(configmachine.TypeControlPlane, 11)
	w.install(configmachine.TypeControlPlane, 12)
	w.install(configmachine.TypeControlPlane, 13)
	w.bootstrap(11)
	for _, h := range []byte{11, 12, 13} {
		w.stage(h, talos.StageRunning)
	}
	w.eventually("it has the address", func() bool { return w.status(11).VIP })
	holder.PowerOff()
	w.never(200*time.Millisecond, "another one has it", func() bool { return w.status(12).VIP || w.status(13).VIP })
}

func TestVIP_MovesAtOnceFromANodeWhoseLastSecondsNobodySees(t *testing.T) {
	w := newWorld(t, func(c *talos.Config) { c.Latency.VIPFailover = time.Hour }) // of a lease that expires
	w.cluster(3, 0)
	w.eventually("it answers", func() bool { return w.status(11).VIP && w.kube.answers(w.vip()) })
	w.kube.slow.Lock()
	release := sync.OnceFunc(w.kube.slow.Unlock)
	defer release()
	_, err := w.admin(12).ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{
		Data: w.config(configmachine.TypeControlPlane, 12, func(c *v1alpha1.Config) {
			c.ClusterConfig.APIServerConfig.ContainerImage = "registry.k8s.io/kube-apiserver:v1.35.9"
		}), Mode: machine.ApplyConfigurationRequest_NO_REBOOT,
	})
	require.NoError(t, err)
	w.eventually("its API server stops, which takes its time", func() bool { return !w.kube.answers(w.addr(12)) })
	require.NoError(t, w.admin(11).Reboot(w.ctx))
	w.eventually("it boots again", func() bool { return !w.status(11).VIP })
	release()
	w.eventually("another one has it", func() bool { return w.status(12).VIP })
}

func TestEtcd_RemovingAMemberByIDLeavesTheOthers(t *testing.T) {
	w := newWorld(t)
	w.cluster(3, 0)
	c := w.admin(11)
	list, err := c.EtcdMemberList(w.ctx, &machine.EtcdMemberListRequest{})
	require.NoError(t, err)
	for _, m := range list.Messages[0].Members {
		if m.Hostname == node(13) {
			require.NoError(t, c.EtcdRemoveMemberByID(w.ctx, &machine.EtcdRemoveMemberByIDRequest{MemberId: m.Id}))
		}
	}
	require.ElementsMatch(t, []string{node(11), node(12)}, etcdMembers(w, 11))
	w.eventually("etcd of the removed one fails", func() bool { return w.service(13, "etcd").State == "Failed" })
	err = c.EtcdRemoveMemberByID(w.ctx, &machine.EtcdRemoveMemberByIDRequest{MemberId: 1})
	require.Equal(t, codes.NotFound, client.StatusCode(err))
	require.ErrorContains(t, err, "failed to remove member 1: etcdserver: member not found")
	_, err = w.admin(13).EtcdForfeitLeadership(w.ctx, &machine.EtcdForfeitLeadershipRequest{})
	require.ErrorContains(t, err, "in list of etcd members")

	require.NoError(t, w.admin(13).Reboot(w.ctx))
	w.eventually("it fails after a reboot, too", func() bool {
		return w.status(13).Stage == talos.StageBooting && w.service(13, "etcd").State == "Failed"
	})
	require.ElementsMatch(t, []string{node(11), node(12)}, etcdMembers(w, 11), "it does not join again with its data")
}

func TestEtcd_AMemberThatTheOthersNeedIsNotRemoved(t *testing.T) {
	w := newWorld(t)
	guests, ids := map[byte]func(){}, map[string]uint64{}
	for _, h := range []byte{11, 12, 13} {
		g, _ := w.install(configmachine.TypeControlPlane, h)
		guests[h] = g.PowerOff
	}
	w.bootstrap(11)
	for _, h := range []byte{11, 12, 13} {
		w.stage(h, talos.StageRunning)
	}
	c := w.admin(11)
	list, err := c.EtcdMemberList(w.ctx, &machine.EtcdMemberListRequest{})
	require.NoError(t, err)
	for _, m := range list.Messages[0].Members {
		ids[m.Hostname] = m.Id
	}
	guests[13]()
	remove := func(host byte) error {
		return c.EtcdRemoveMemberByID(w.ctx, &machine.EtcdRemoveMemberByIDRequest{MemberId: ids[node(host)]})
	}
	err = remove(12)
	require.ErrorContains(t, err, "failed to remove member: failed to remove member")
	require.ErrorContains(t, err, "etcdserver: unhealthy cluster")
	require.NoError(t, remove(13), "a dead one does not count")
	require.NoError(t, remove(12))
	require.ErrorContains(t, remove(11), "not enough started members")
}

func TestEtcd_LeadershipGoesToTheFirstOtherMemberOnly(t *testing.T) {
	w := newWorld(t)
	guests := map[byte]func(){}
	for _, h := range []byte{11, 12, 13} {
		g, _ := w.install(configmachine.TypeControlPlane, h)
		guests[h] = g.PowerOff
	}
	w.bootstrap(11)
	for _, h := range []byte{11, 12, 13} {
		w.stage(h, talos.StageRunning)
	}
	forfeit := func(host byte) (string, error) {
		reply, err := w.admin(host).EtcdForfeitLeadership(w.ctx, &machine.EtcdForfeitLeadershipRequest{})
		if err != nil {
			return "", err
		}
		return reply.Messages[0].Member, nil
	}
	first, err := forfeit(11)
	require.NoError(t, err)
	require.Equal(t, etcdMembers(w, 11)[1], first)
	none, err := forfeit(11)
	require.NoError(t, err)
	require.Empty(t, none, "it does not lead")
	leads, follows := byte(12), byte(13)
	if first == node(13) {
		leads, follows = 13, 12
	}
	back, err := forfeit(leads)
	require.NoError(t, err)
	require.Equal(t, node(11), back)
	guests[leads]()
	_, err = forfeit(11)
	require.ErrorContains(t, err, "leader transfer took too long", node(follows)+" is not asked")
}

func TestReset_AGracefulOneLeavesEtcd(t *testing.T) {
	w := newWorld(t)
	w.cluster(3, 0)
	require.NoError(t, w.admin(13).Reset(w.ctx, true, false))
	w.stage(13, talos.StageOff)
	require.ElementsMatch(t, []string{node(11), node(12)}, etcdMembers(w, 11))
	w.eventually("it is no member of the cluster", func() bool { return len(members(w, 11)) == 2 })
}

func TestReset_OfAllNodesAllowsANewBootstrap(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 0)
	require.NoError(t, w.admin(11).Reset(w.ctx, false, true))
	w.stage(11, talos.StageMaintenance)
	w.apply(11, w.config(configmachine.TypeControlPlane, 11))
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)
	ids := w.kube.ids()
	require.Len(t, ids, 2)
	require.NotEqual(t, ids[0], ids[1], "etcd's data is new")
}

func TestMembers_AreTheSameOnEveryNode(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 2)
	want := []string{node(11), node(21), node(22)}
	for _, h := range []byte{11, 21, 22} {
		w.eventually("all are known", func() bool { return len(members(w, h)) == 3 })
		require.ElementsMatch(t, want, members(w, h))
	}
}

func members(w *world, host byte) []string {
	w.t.Helper()
	var out []string
	for _, m := range listed[*clusterres.Member](w, host) {
		out = append(out, m.TypedSpec().Hostname)
	}
	return out
}

func TestEtcd_TakesNoMemberWhileAVoterIsAway(t *testing.T) {
	w := newWorld(t)
	w.install(configmachine.TypeControlPlane, 11)
	w.install(configmachine.TypeControlPlane, 12)
	dead, _ := w.install(configmachine.TypeControlPlane, 13)
	w.bootstrap(11)
	for _, h := range []byte{11, 12, 13} {
		w.stage(h, talos.StageRunning)
	}
	list, err := w.admin(11).EtcdMemberList(w.ctx, &machine.EtcdMemberListRequest{})
	require.NoError(t, err)
	i := slices.IndexFunc(list.Messages[0].Members, func(m *machine.EtcdMember) bool { return m.Hostname == node(13) })
	dead.PowerOff()
	w.install(configmachine.TypeControlPlane, 14)
	w.eventually("etcd refuses it, although two of three members run", func() bool {
		return strings.Contains(w.dmesg(14), "retrying error: error adding member: etcdserver: unhealthy cluster")
	})
	require.NotContains(t, etcdMembers(w, 11), node(14))
	id := list.Messages[0].Members[i].Id
	require.NoError(t, w.admin(11).EtcdRemoveMemberByID(w.ctx, &machine.EtcdRemoveMemberByIDRequest{MemberId: id}))
	w.stage(14, talos.StageRunning)
	require.ElementsMatch(t, []string{node(11), node(12), node(14)}, etcdMembers(w, 11))
}

// A rebuilt machine has an empty disk. Talos removes the member of its name before it joins.
func TestEtcd_ARebuiltControlPlaneTakesThePlaceOfItsFormerMember(t *testing.T) {
	w := newWorld(t)
	w.install(configmachine.TypeControlPlane, 11)
	former, _ := w.install(configmachine.TypeControlPlane, 12)
	w.install(configmachine.TypeControlPlane, 13)
	w.bootstrap(11)
	members := func() map[string]uint64 {
		list, err := w.admin(11).EtcdMemberList(w.ctx, &machine.EtcdMemberListRequest{})
		ids := map[string]uint64{}
		if err == nil {
			for _, m := range list.Messages[0].Members {
				if ids[m.Hostname] != 0 {
					return nil
				}
				if !m.IsLearner {
					ids[m.Hostname] = m.Id
				}
			}
		}
		return ids
	}
	w.eventually("three members vote", func() bool { return len(members()) == 3 })
	before := members()
	former.PowerOff()
	w.install(configmachine.TypeControlPlane, 12)
	w.eventually("it is another member of the same name", func() bool {
		now := members()
		return len(now) == 3 && now[node(12)] != before[node(12)]
	})
	require.Equal(t, before[node(11)], members()[node(11)])
	files, err := w.admin(12).LS(w.ctx, &machine.ListRequest{Root: "/var/lib", Recurse: true, RecursionDepth: 2})
	require.NoError(t, err)
	var names []string
	for {
		file, err := files.Recv()
		if err != nil {
			break
		}
		names = append(names, file.RelativeName)
	}
	require.Contains(t, names, "etcd/member")
}
