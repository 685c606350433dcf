package talos_test

import (
	"io"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/slipway-platform/slipway/lab/talos"
	"github.com/slipway-platform/slipway/lab/vm"
)

func TestEtcd_IsRecoveredFromASnapshotOnNewMachines(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 1)
	r, err := w.admin(11).EtcdSnapshot(w.ctx, &machine.EtcdSnapshotRequest{})
	require.NoError(t, err)
	snapshot, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "data of "+w.kube.ids()[0], string(snapshot))
	r, err = w.admin(21).EtcdSnapshot(w.ctx, &machine.EtcdSnapshotRequest{})
	if err == nil {
		_, err = io.ReadAll(r)
	}
	require.Equal(t, codes.Unimplemented, client.StatusCode(err), "a worker has none")

	_, err = w.admin(11).ResetGenericWithResponse(w.ctx, &machine.ResetRequest{Reboot: true})
	require.NoError(t, err)
	w.stage(11, talos.StageMaintenance)
	w.apply(11, w.config(configmachine.TypeControlPlane, 11))
	w.eventually("etcd waits", func() bool { return w.service(11, "etcd").State == "Preparing" && w.service(11, "apid").Healthy })
	c := w.admin(11)
	failed := func(text string) {
		t.Helper()
		w.eventually("the error is that of the service", func() bool {
			s := w.service(11, "etcd")
			return s.State == "Failed" && strings.Contains(s.Message, text)
		})
	}
	w.eventually("the call says nothing of it", func() bool {
		return c.Bootstrap(w.ctx, &machine.BootstrapRequest{RecoverEtcd: true}) == nil
	})
	failed("error verifying snapshot: stat /var/lib/etcd.snapshot: no such file or directory")
	_, err = c.EtcdRecover(w.ctx, strings.NewReader("nonsense"))
	require.NoError(t, err)
	require.NoError(t, c.Bootstrap(w.ctx, &machine.BootstrapRequest{RecoverEtcd: true}))
	failed("error verifying snapshot: invalid database")
	_, err = c.EtcdRecover(w.ctx, strings.NewReader(string(snapshot)))
	require.NoError(t, err)
	require.NoError(t, c.Bootstrap(w.ctx, &machine.BootstrapRequest{RecoverEtcd: true}))
	w.stage(11, talos.StageRunning)
	ids := w.kube.ids()
	require.Equal(t, w.kube.recovered, ids[len(ids)-1], "the control plane runs on the recovered data")
	require.Equal(t, []string{node(11)}, etcdMembers(w, 11))
	require.Equal(t, codes.AlreadyExists, client.StatusCode(c.Bootstrap(w.ctx, &machine.BootstrapRequest{RecoverEtcd: true})))
}

// The way back that docs/recovery.md describes.
func TestEtcd_TheDataOfASurvivorWithoutAQuorumMakesANewCluster(t *testing.T) {
	w := newWorld(t)
	var dead []vm.Guest
	for _, h := range []byte{11, 12, 13} {
		g, _ := w.install(configmachine.TypeControlPlane, h)
		dead = append(dead, g)
	}
	w.bootstrap(11)
	for _, h := range []byte{11, 12, 13} {
		w.stage(h, talos.StageRunning)
	}
	dead[1].PowerOff()
	dead[2].PowerOff()
	w.eventually("no quorum", w.kube.suspended)
	c := w.admin(11)
	snapshot, err := c.EtcdSnapshot(w.ctx, &machine.EtcdSnapshotRequest{})
	if err == nil {
		_, err = io.ReadAll(snapshot)
	}
	require.Error(t, err, "no snapshot can be had")
	const file = "/var/lib/etcd/member/snap/db"
	r, err := c.Read(w.ctx, file)
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "data of "+w.kube.ids()[0], string(data))

	_, err = c.ResetGenericWithResponse(w.ctx, &machine.ResetRequest{Reboot: true, SystemPartitionsToWipe: []*machine.ResetPartitionSpec{
		{Label: constants.EphemeralPartitionLabel, Wipe: true},
	}})
	require.NoError(t, err)
	w.eventually("etcd waits, with the former configuration", func() bool {
		return w.service(11, "etcd").State == "Preparing" && w.service(11, "apid").Healthy
	})
	c = w.admin(11)
	w.eventually("its data is gone", func() bool {
		r, err := c.Read(w.ctx, file)
		if err == nil {
			_, err = io.ReadAll(r)
		}
		return client.StatusCode(err) == codes.NotFound
	})
	_, err = c.EtcdRecover(w.ctx, strings.NewReader(string(data)))
	require.NoError(t, err)
	require.NoError(t, c.Bootstrap(w.ctx, &machine.BootstrapRequest{RecoverEtcd: true}))
	w.stage(11, talos.StageRunning)
	require.Equal(t, []string{node(11)}, etcdMembers(w, 11), "the dead ones are no members")
}

func TestEtcd_KeepsItsLastMemberAndItsQuorum(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 0)
	c := w.admin(11)
	require.ErrorContains(t, c.EtcdLeaveCluster(w.ctx, &machine.EtcdLeaveClusterRequest{}), "not enough started members")
	_, err := c.EtcdForfeitLeadership(w.ctx, &machine.EtcdForfeitLeadershipRequest{})
	require.ErrorContains(t, err, "cannot forfeit leadership, only one member")
	before := bootID(w, c)
	_, err = c.ResetGenericWithResponse(w.ctx, &machine.ResetRequest{Graceful: true, Reboot: true})
	require.NoError(t, err)
	w.rebooted(11, before)
	require.Equal(t, []string{node(11)}, etcdMembers(w, 11), "a graceful reset of the last control plane fails")
}
