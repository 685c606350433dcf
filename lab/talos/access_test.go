package talos_test

import (
	"crypto/tls"
	"io"
	"net/netip"
	"testing"

	"github.com/siderolabs/go-pointer"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

// forPods gives pods access to Talos's API.
func forPods(c *v1alpha1.Config) {
	c.MachineConfig.MachineFeatures.KubernetesTalosAPIAccessConfig = &v1alpha1.KubernetesTalosAPIAccessConfig{
		AccessEnabled: pointer.To(true), AccessAllowedRoles: []string{string(role.EtcdBackup)},
		AccessAllowedKubernetesNamespaces: []string{"etcd-backup"},
	}
}

func TestAccess_FollowsTheConfigurationWithoutAReboot(t *testing.T) {
	w := newWorld(t)
	w.cluster(2, 0)
	plane := w.kube.planes[0]
	is := func(given bool, at ...netip.Addr) bool {
		w.kube.mu.Lock()
		defer w.kube.mu.Unlock()
		return (plane.access != nil) == given && len(plane.accessAt) == len(at) && len(plane.applied) > 0
	}
	named := func(host byte) bool {
		conn, err := tls.Dial("tcp", w.endpoint(host), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // only its names are read
		require.NoError(t, err)
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].VerifyHostname("talos.default") == nil
	}
	require.Nil(t, plane.access)
	require.False(t, named(11))
	apply := func(host byte, change ...func(*v1alpha1.Config)) {
		_, err := w.admin(host).ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{
			Mode: machine.ApplyConfigurationRequest_NO_REBOOT, Data: w.config(configmachine.TypeControlPlane, host, change...),
		})
		require.NoError(t, err)
	}
	manifests := len(plane.applied)
	apply(12, forPods)
	w.eventually("one control plane is enough", func() bool { return is(true, w.addr(11), w.addr(12)) })
	w.eventually("pods find the API by the name of its Service", func() bool { return named(12) })
	w.eventually("the CRD is applied", func() bool {
		w.kube.mu.Lock()
		defer w.kube.mu.Unlock()
		return len(plane.applied) > manifests
	})
	apply(12)
	w.eventually("the access ends", func() bool { return is(false) })
}

func TestAccess_TheRoleOfSnapshotsTakesThemAndChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 0)
	c := w.admin(11, role.EtcdBackup)
	r, err := c.EtcdSnapshot(w.ctx, &machine.EtcdSnapshotRequest{})
	require.NoError(t, err)
	snapshot, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "data of "+w.kube.ids()[0], string(snapshot))
	_, err = c.EtcdStatus(w.ctx)
	require.NoError(t, err)
	_, version := c.Version(w.ctx)
	_, services := c.ServiceList(w.ctx)
	_, applied := c.ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{Data: w.config(configmachine.TypeControlPlane, 11)})
	for _, err := range []error{version, services, applied, c.Reboot(w.ctx)} {
		require.Equal(t, codes.PermissionDenied, client.StatusCode(err), "%v", err)
	}
}
