package talos_test

import (
	"context"
	stdx509 "crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	generated "github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"github.com/siderolabs/talos/pkg/machinery/resources/secrets"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
)

const staged, noReboot = machine.ApplyConfigurationRequest_STAGED, machine.ApplyConfigurationRequest_NO_REBOOT

// newPatientWorld is a world with time for many boots on a busy machine.
func newPatientWorld(t testing.TB) *world {
	t.Helper()
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	w.ctx = ctx
	return w
}

// etcdCA is a new CA of etcd.
func etcdCA(t testing.TB) *x509.PEMEncodedCertificateAndKey {
	t.Helper()
	ca, err := generated.NewEtcdCA(time.Now(), nil)
	require.NoError(t, err)
	return x509.NewCertificateAndKeyFromCertificateAuthority(ca)
}

// bundle is a CA that issues, before others that are accepted, too.
func bundle(issuing *x509.PEMEncodedCertificateAndKey, accepted ...*x509.PEMEncodedCertificateAndKey) func(*v1alpha1.Config) {
	ca := &x509.PEMEncodedCertificateAndKey{Crt: slices.Clone(issuing.Crt), Key: issuing.Key}
	for _, one := range accepted {
		ca.Crt = append(ca.Crt, one.Crt...)
	}
	return func(c *v1alpha1.Config) { c.ClusterConfig.EtcdConfig.RootCA = ca }
}

// gives applies a CA of etcd to a control plane, and reboots it if the configuration is staged.
func (w *world) gives(host byte, mode machine.ApplyConfigurationRequest_Mode, ca func(*v1alpha1.Config)) {
	w.t.Helper()
	c := w.admin(host)
	before := bootID(w, c)
	_, err := c.ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{
		Data: w.config(configmachine.TypeControlPlane, host, ca), Mode: mode})
	require.NoError(w.t, err)
	if mode == staged {
		require.NoError(w.t, c.Reboot(w.ctx))
		w.eventually("another boot", func() bool {
			id := tryBootID(w, w.admin(host))
			return id != "" && id != before
		})
	}
}

// etcdStatus is what etcd of a control plane says of itself; nil if it does not answer.
func (w *world) etcdStatus(host byte) *machine.EtcdMemberStatus {
	if w.askers[host] == nil { // one client a host, because conditions ask often
		w.askers[host] = w.admin(host)
	}
	ctx, cancel := context.WithTimeout(w.ctx, 300*time.Millisecond)
	defer cancel()
	reply, err := w.askers[host].EtcdStatus(ctx)
	if err != nil {
		return nil
	}
	return reply.Messages[0].MemberStatus
}

// led are the control planes of some whose etcd has a leader and whose API server answers.
func (w *world) led(hosts ...byte) (out []byte) {
	for _, h := range hosts {
		if w.service(h, "etcd").Healthy && w.kube.answers(w.addr(h)) && w.etcdStatus(h).GetLeader() != 0 {
			out = append(out, h)
		}
	}
	return out
}

func (w *world) allLed(hosts ...byte) {
	w.t.Helper()
	w.eventually("each has a leader", func() bool { return slices.Equal(w.led(hosts...), hosts) })
}

// issuedBy waits until a control plane's certificates are issued by a CA.
func (w *world) issuedBy(host byte, ca *x509.PEMEncodedCertificateAndKey) {
	w.t.Helper()
	issuer, err := ca.GetCert()
	require.NoError(w.t, err)
	w.eventually("it issues", func() bool {
		certs := resource[*secrets.Etcd](w, host, secrets.NamespaceName, secrets.EtcdID).TypedSpec()
		for _, one := range []*x509.PEMEncodedCertificateAndKey{certs.Etcd, certs.EtcdPeer, certs.EtcdAdmin, certs.EtcdAPIServer} {
			cert, err := one.GetCert()
			require.NoError(w.t, err)
			if cert.CheckSignatureFrom(issuer) != nil {
				return false
			}
		}
		return true
	})
}

func (w *world) etcdLog(host byte) string {
	w.t.Helper()
	text, err := w.log(host, "etcd", -1)
	require.NoError(w.t, err)
	return text
}

func TestEtcdPKI_PassesInTheRightOrderKeepTheQuorum(t *testing.T) {
	w := newPatientWorld(t)
	w.cluster(3, 0)
	former, next := w.input.Options.SecretsBundle.Certs.Etcd, etcdCA(t)
	hosts := []byte{11, 12, 13}
	stop := make(chan struct{})
	lost := make(chan bool, 1)
	go func() {
		for {
			select {
			case <-stop:
				lost <- false
				return
			case <-time.After(time.Millisecond):
				if w.kube.suspended() {
					lost <- true
					return
				}
			}
		}
	}()
	for _, pass := range []struct {
		mode   machine.ApplyConfigurationRequest_Mode
		ca     func(*v1alpha1.Config)
		issuer *x509.PEMEncodedCertificateAndKey
	}{{staged, bundle(former, next), former}, {noReboot, bundle(next, former), next}, {staged, bundle(next), next}} {
		for _, h := range hosts {
			w.gives(h, pass.mode, pass.ca)
			w.issuedBy(h, pass.issuer)
			w.allLed(hosts...)
			require.Len(t, etcdMembers(w, h), 3)
		}
	}
	close(stop)
	require.False(t, <-lost, "the quorum was lost")

	w.gives(13, noReboot, bundle(former))
	w.issuedBy(13, former)
	require.Nil(t, w.etcdStatus(13), "the former CA is not accepted any more")
}

func TestEtcdPKI_AMemberWithAnotherCAIsCutOffUntilItHasTheFormerOne(t *testing.T) {
	w := newPatientWorld(t)
	w.cluster(3, 0)
	former, next := w.input.Options.SecretsBundle.Certs.Etcd, etcdCA(t)
	w.gives(13, staged, bundle(next))
	w.eventually("it has no leader", func() bool {
		s := w.etcdStatus(13)
		return s != nil && s.Leader == 0 && slices.Contains(s.Errors, "etcdserver: no leader")
	})
	w.eventually("its health check fails", func() bool {
		return w.service(13, "etcd").Message == "Health check failed: context deadline exceeded"
	})
	_, err := w.admin(13).EtcdMemberList(w.ctx, &machine.EtcdMemberListRequest{})
	require.Equal(t, codes.Unavailable, client.StatusCode(err))
	require.ErrorContains(t, err, "etcdserver: no leader")
	require.False(t, w.kube.answers(w.addr(13)))
	require.Contains(t, w.etcdLog(13), "rejected connection on peer endpoint")
	require.Equal(t, []byte{11, 12}, w.led(11, 12, 13))
	require.False(t, w.kube.suspended())

	w.gives(13, staged, bundle(former))
	w.allLed(11, 12, 13)
}

func TestEtcdPKI_APeerThatDoesNotTrustTheIssuerIsCutOffByTheNextStart(t *testing.T) {
	w := newPatientWorld(t)
	w.cluster(3, 0)
	former, next := w.input.Options.SecretsBundle.Certs.Etcd, etcdCA(t)
	for _, h := range []byte{11, 12} {
		w.gives(h, staged, bundle(former, next))
		w.allLed(11, 12, 13)
	}
	for _, h := range []byte{11, 12} {
		w.gives(h, noReboot, bundle(next, former))
		w.issuedBy(h, next)
	}
	w.allLed(11, 12, 13) // connections stay
	before := bootID(w, w.admin(13))
	require.NoError(t, w.admin(13).Reboot(w.ctx))
	w.eventually("another boot", func() bool { id := tryBootID(w, w.admin(13)); return id != "" && id != before })
	w.eventually("it has no leader", func() bool { s := w.etcdStatus(13); return s != nil && s.Leader == 0 })
	require.Equal(t, []byte{11, 12}, w.led(11, 12, 13))
}

func TestEtcdPKI_AnIssuerThatNobodyTrustsCostsTheQuorumWhenMembersStart(t *testing.T) {
	w := newPatientWorld(t)
	w.cluster(3, 0)
	next := etcdCA(t)
	for _, h := range []byte{11, 12, 13} {
		w.gives(h, noReboot, bundle(next))
		w.issuedBy(h, next)
		require.Nil(t, w.etcdStatus(h), "etcd has not started again, and refuses Talos's own client")
	}
	require.False(t, w.kube.suspended(), "connections stay")
	ctx, cancel := context.WithTimeout(w.ctx, 300*time.Millisecond)
	defer cancel()
	_, err := w.admin(11).EtcdMemberList(ctx, &machine.EtcdMemberListRequest{})
	require.Equal(t, codes.DeadlineExceeded, client.StatusCode(err))
	require.Contains(t, w.etcdLog(11), "certificate signed by unknown authority")
	boot := bootID(w, w.admin(13))
	require.NoError(t, w.admin(13).Reboot(w.ctx))
	w.eventually("another boot", func() bool { id := tryBootID(w, w.admin(13)); return id != "" && id != boot })
	w.eventually("it has no leader", func() bool { s := w.etcdStatus(13); return s != nil && s.Leader == 0 })
	require.False(t, w.kube.suspended(), "two of three are connected")
	require.NoError(t, w.admin(12).Reboot(w.ctx))
	w.eventually("12 and 13 are connected, and a majority", func() bool { return slices.Equal(w.led(11, 12, 13), []byte{12, 13}) })
}

func TestEtcdPKI_AJoiningControlPlaneIsAcceptedByTheMembers(t *testing.T) {
	w := newPatientWorld(t)
	w.cluster(1, 0)
	former, next := w.input.Options.SecretsBundle.Certs.Etcd, etcdCA(t)
	w.install(configmachine.TypeControlPlane, 12, bundle(next))
	w.eventually("it waits", func() bool {
		return strings.Contains(w.dmesg(12), "retrying error: error getting etcd member list: context deadline exceeded")
	})
	require.Contains(t, w.etcdLog(11), "rejected connection on client endpoint")
	require.Len(t, etcdMembers(w, 11), 1)
	w.gives(12, noReboot, bundle(former))
	w.allLed(11, 12)
}

func TestEtcdPKI_AnAPIServerThatStartsBeforeItsEtcdDoesNotReachIt(t *testing.T) {
	w := newPatientWorld(t)
	w.cluster(1, 0)
	next := etcdCA(t)
	w.gives(11, noReboot, bundle(next))
	w.issuedBy(11, next)
	require.True(t, w.kube.answers(w.addr(11)), "its connection stays")
	w.gives(11, noReboot, func(c *v1alpha1.Config) {
		bundle(next)(c)
		c.ClusterConfig.APIServerConfig.ContainerImage = "registry.k8s.io/kube-apiserver:v1.35.9"
	})
	w.eventually("it starts again", func() bool { return !w.kube.answers(w.addr(11)) })
	w.never(200*time.Millisecond, "it answers", func() bool { return w.kube.answers(w.addr(11)) })
	w.gives(11, staged, bundle(next))
	w.allLed(11)
}

func TestEtcdPKI_TheFirstCertificateIssues(t *testing.T) {
	w := newPatientWorld(t)
	w.cluster(1, 1)
	former, next := w.input.Options.SecretsBundle.Certs.Etcd, etcdCA(t)
	root := func() *x509.PEMEncodedCertificateAndKey {
		return resource[*secrets.EtcdRoot](w, 11, secrets.NamespaceName, secrets.EtcdRootID).TypedSpec().EtcdCA
	}
	require.Equal(t, former, root())
	w.issuedBy(11, former)
	written := func() *etcd.PKIStatusSpec {
		return resource[*etcd.PKIStatus](w, 11, etcd.NamespaceName, etcd.PKIID).TypedSpec()
	}
	require.Equal(t, &etcd.PKIStatusSpec{Ready: true, Version: "1"}, written())
	certs := resource[*secrets.Etcd](w, 11, secrets.NamespaceName, secrets.EtcdID).TypedSpec()
	server, err := certs.Etcd.GetCert()
	require.NoError(t, err)
	require.NoError(t, server.VerifyHostname("localhost"))
	require.NoError(t, server.VerifyHostname(w.addr(11).String()))
	peer, err := certs.EtcdPeer.GetCert()
	require.NoError(t, err)
	require.NoError(t, peer.VerifyHostname(node(11)))
	require.Error(t, peer.VerifyHostname("localhost"))
	admin, err := certs.EtcdAdmin.GetCert()
	require.NoError(t, err)
	require.Equal(t, []stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}, admin.ExtKeyUsage)
	require.Empty(t, listed[*secrets.EtcdRoot](w, 21), "a worker has none")
	_, err = w.admin(11, role.Reader).COSI.Get(w.ctx, secrets.NewEtcdRoot(secrets.EtcdRootID).Metadata())
	require.Equal(t, codes.PermissionDenied, client.StatusCode(err))

	w.gives(11, noReboot, bundle(former, next))
	w.eventually("it has both", func() bool {
		first, rest := pem.Decode(root().Crt)
		second, _ := pem.Decode(rest)
		return first != nil && second != nil
	})
	w.eventually("it issues once more", func() bool { return written().Version == "2" })
	w.issuedBy(11, former)
	w.gives(11, noReboot, bundle(next, former))
	w.issuedBy(11, next)
	w.eventually("it issues once more", func() bool { return written().Version == "3" })
}

func TestEtcdPKI_EtcdWaitsForACAThatWorks(t *testing.T) {
	w := newPatientWorld(t)
	former, next := w.input.Options.SecretsBundle.Certs.Etcd, etcdCA(t)
	w.install(configmachine.TypeControlPlane, 11, bundle(&x509.PEMEncodedCertificateAndKey{Crt: former.Crt, Key: next.Key}))
	w.bootstrap(11)
	w.eventually("nothing can be issued", func() bool {
		return strings.Contains(w.dmesg(11), "[talos] controller failed: secrets.EtcdController: error generating etcd client certs: "+
			"failed generating client key pair: failed to create new certificate: x509: provided PrivateKey doesn't match parent's PublicKey")
	})
	require.Empty(t, listed[*secrets.Etcd](w, 11))
	require.Empty(t, listed[*etcd.PKIStatus](w, 11))
	require.Equal(t, "Preparing", w.service(11, "etcd").State)
	w.gives(11, noReboot, bundle(former))
	w.allLed(11)
}
