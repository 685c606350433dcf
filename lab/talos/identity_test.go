package talos_test

import (
	"testing"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"github.com/stretchr/testify/require"
)

// authority is a CA of the Talos API with an administrator's certificate.
type authority struct {
	ca, admin *x509.PEMEncodedCertificateAndKey
}

func (w *world) newAuthority() authority {
	w.t.Helper()
	ca, err := secrets.NewTalosCA(time.Now())
	require.NoError(w.t, err)
	return w.authority(x509.NewCertificateAndKeyFromCertificateAuthority(ca))
}

func (w *world) authority(ca *x509.PEMEncodedCertificateAndKey) authority {
	w.t.Helper()
	admin, err := secrets.NewAdminCertificateAndKey(time.Now(), ca, role.MakeSet(role.Admin), time.Hour)
	require.NoError(w.t, err)
	return authority{ca, admin}
}

// accepts tells whether a node answers a new connection of a client, which accepts servers of one CA only. asked is the node that is asked.
func (w *world) accepts(host byte, user, server authority, asked ...string) bool {
	w.t.Helper()
	cc := clientconfig.NewConfig("test", []string{w.endpoint(host)}, server.ca.Crt, user.admin)
	c, err := client.New(w.ctx, client.WithConfig(cc))
	require.NoError(w.t, err)
	defer c.Close() //nolint:errcheck // the answer is read
	_, err = c.Version(client.WithNodes(w.ctx, asked...))
	return err == nil
}

// trusts sets the CAs of a node: the issuing one, and others that are accepted.
func (w *world) trusts(host byte, kind configmachine.Type, user, server, issuing authority, accepted ...authority) {
	w.t.Helper()
	cc := clientconfig.NewConfig("test", []string{w.endpoint(host)}, server.ca.Crt, user.admin)
	c, err := client.New(w.ctx, client.WithConfig(cc))
	require.NoError(w.t, err)
	defer c.Close() //nolint:errcheck // the answer is read
	_, err = c.ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{
		Mode: machine.ApplyConfigurationRequest_NO_REBOOT,
		Data: w.config(kind, host, func(c *v1alpha1.Config) {
			c.MachineConfig.MachineCA = issuing.ca
			if kind == configmachine.TypeWorker {
				c.MachineConfig.MachineCA = &x509.PEMEncodedCertificateAndKey{Crt: issuing.ca.Crt}
			}
			for _, one := range accepted {
				c.MachineConfig.MachineAcceptedCAs = append(c.MachineConfig.MachineAcceptedCAs, &x509.PEMEncodedCertificate{Crt: one.ca.Crt})
			}
		}),
	})
	require.NoError(w.t, err)
}

func TestIdentity_FollowsTheCAsOfTheConfigurationWithoutAReboot(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 1)
	before, after := w.authority(w.input.Options.SecretsBundle.Certs.OS), w.newAuthority()
	boot := bootID(w, w.admin(11))
	require.False(t, w.accepts(11, after, before))
	both := []struct {
		host byte
		kind configmachine.Type
	}{{11, configmachine.TypeControlPlane}, {21, configmachine.TypeWorker}}

	for _, n := range both {
		w.trusts(n.host, n.kind, before, before, before, after)
		w.eventually("the new CA is accepted", func() bool { return w.accepts(n.host, after, before) })
		require.True(t, w.accepts(n.host, before, before))
	}
	for _, n := range both {
		w.trusts(n.host, n.kind, before, before, after, before)
		w.eventually("the new CA issues", func() bool { return w.accepts(n.host, before, after) })
		require.True(t, w.accepts(n.host, after, after))
		require.False(t, w.accepts(n.host, after, before), "the server's certificate is of the new CA")
		require.True(t, w.accepts(11, after, after, w.addr(21).String()), "nodes reach each other")
	}
	for _, n := range both {
		w.trusts(n.host, n.kind, after, after, after)
		w.eventually("the former CA is refused", func() bool { return !w.accepts(n.host, before, after) })
		require.True(t, w.accepts(n.host, after, after))
	}
	require.True(t, w.accepts(11, after, after, w.addr(21).String()))
	require.Equal(t, boot, func() string {
		cc := clientconfig.NewConfig("test", []string{w.endpoint(11)}, after.ca.Crt, after.admin)
		c, err := client.New(w.ctx, client.WithConfig(cc))
		require.NoError(t, err)
		defer c.Close() //nolint:errcheck // the answer is read
		return bootID(w, c)
	}())
}

// Talos does the same: a worker takes what its control plane accepted when it signed.
func TestIdentity_OfAWorkerIsThatOfTheControlPlaneThatSignsIt(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 1)
	before, after := w.authority(w.input.Options.SecretsBundle.Certs.OS), w.newAuthority()
	w.trusts(21, configmachine.TypeWorker, before, before, before, after)
	for end := time.Now().Add(5 * fast().Service); time.Now().Before(end); {
		require.False(t, w.accepts(21, after, before), "its control plane does not accept the new CA")
	}

	// A control plane with a CA that the worker does not accept signs nothing for it, and is not forwarded to.
	w.trusts(11, configmachine.TypeControlPlane, before, before, after)
	w.eventually("the control plane has the new CA", func() bool { return w.accepts(11, after, after) })
	require.False(t, w.accepts(11, after, after, w.addr(21).String()), "the worker accepts the former CA only")
}
