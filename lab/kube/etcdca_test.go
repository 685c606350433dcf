package kube

import (
	"context"
	"crypto/tls"
	stdx509 "crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/slipway-platform/slipway/lab/kube/kubetest"
	"github.com/slipway-platform/slipway/lab/kube/process"
)

// securedMember is a real etcd with TLS, with the flags and files of Talos's.
type securedMember struct {
	t            *testing.T
	binary       string
	name         string
	client, peer netip.AddrPort
	dir          string
	cluster      string // --initial-cluster
	running      *process.Process
}

// securedMembers starts members of one cluster with a CA.
func securedMembers(t *testing.T, count int, ca *x509.CertificateAuthority) (members []*securedMember) {
	t.Helper()
	binary := kubetest.Binary(t, "etcd")
	free := func() netip.AddrPort {
		l, err := net.Listen("tcp", netip.AddrPortFrom(kubetest.Loopback(), 0).String())
		require.NoError(t, err)
		defer l.Close()
		return l.Addr().(*net.TCPAddr).AddrPort()
	}
	var all []string
	for i := range count {
		m := &securedMember{t: t, binary: binary, name: fmt.Sprint("cp-", i+1), client: free(), peer: free(), dir: t.TempDir()}
		members = append(members, m)
		all = append(all, fmt.Sprintf("%s=https://%s", m.name, m.peer))
	}
	for _, m := range members {
		m.cluster = strings.Join(all, ",")
		m.has(ca)
		m.start()
		t.Cleanup(m.stop)
	}
	return members
}

func newCA(t *testing.T) *x509.CertificateAuthority {
	t.Helper()
	ca, err := x509.NewSelfSignedCertificateAuthority(x509.Organization("etcd"), x509.ECDSA(true),
		x509.NotBefore(time.Now().Add(-time.Hour)), x509.NotAfter(time.Now().Add(time.Hour)))
	require.NoError(t, err)
	return ca
}

// pair returns a certificate of an authority for a server and client. Members connect from 127.0.0.1, which etcd looks for in it.
func pair(t *testing.T, ca *x509.CertificateAuthority) *x509.KeyPair {
	t.Helper()
	own, err := x509.NewKeyPair(ca, x509.CommonName("etcd"), x509.IPAddresses([]net.IP{kubetest.Loopback().AsSlice(), net.IPv4(127, 0, 0, 1)}),
		x509.NotBefore(time.Now().Add(-time.Hour)), x509.NotAfter(time.Now().Add(time.Hour)), x509.KeyUsage(stdx509.KeyUsageDigitalSignature),
		x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageServerAuth, stdx509.ExtKeyUsageClientAuth}))
	require.NoError(t, err)
	return own
}

// has writes the files of a member as Talos does for cluster.etcd.ca: the first authority issues, and all are accepted.
func (m *securedMember) has(authorities ...*x509.CertificateAuthority) {
	own := pair(m.t, authorities[0])
	var bundle []byte
	for _, ca := range authorities {
		bundle = append(bundle, ca.CrtPEM...)
	}
	for name, text := range map[string][]byte{"ca.crt": bundle, "own.key": own.KeyPEM, "own.crt": own.CrtPEM} {
		require.NoError(m.t, os.WriteFile(filepath.Join(m.dir, name), text, 0o600))
	}
}

func (m *securedMember) start() {
	client, peer := "https://"+m.client.String(), "https://"+m.peer.String()
	args := []string{
		"--name=" + m.name, "--data-dir=" + m.dir + "/data", "--initial-cluster=" + m.cluster, "--client-cert-auth", "--peer-client-cert-auth",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
	}
	for _, of := range []string{"", "peer-"} {
		args = append(args,
			"--"+of+"cert-file="+m.dir+"/own.crt", "--"+of+"key-file="+m.dir+"/own.key", "--"+of+"trusted-ca-file="+m.dir+"/ca.crt")
	}
	var err error
	m.running, err = process.Start(process.Spec{Name: m.name, Path: m.binary, Args: args, Log: m.dir + "/log"})
	require.NoError(m.t, err)
}

func (m *securedMember) stop() { m.running.Stop(context.Background(), 10*time.Second) }

// restart is what a reboot does to etcd.
func (m *securedMember) restart() {
	m.stop()
	m.start()
}

// answers returns why a member does not answer a read that needs a leader, to a client of an authority that trusts servers of another one.
func (m *securedMember) answers(client, server *x509.CertificateAuthority) error {
	pool := stdx509.NewCertPool()
	pool.AppendCertsFromPEM(server.CrtPEM)
	dial, err := clientv3.New(clientv3.Config{
		Endpoints: []string{m.client.String()}, DialTimeout: 2 * time.Second, Logger: zap.NewNop(),
		TLS: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{*pair(m.t, client).Certificate}, MinVersion: tls.VersionTLS12},
	})
	if err != nil {
		return err
	}
	defer dial.Close()
	ctx, cancel := context.WithTimeout(m.t.Context(), 2*time.Second)
	defer cancel()
	_, err = dial.Get(ctx, "a")
	return err
}

// TestEtcd_ChangesItsCAInThreePassesWithoutLosingAMember shows on three real members what `slipway-probe rotate` relies on: a running etcd
// reads its certificates for each connection, and the CAs that it accepts when it starts.
func TestEtcd_ChangesItsCAInThreePassesWithoutLosingAMember(t *testing.T) {
	former, declared := newCA(t), newCA(t)
	members := securedMembers(t, 3, former)
	// work waits until every member has a leader, for a client whose certificate each of them accepts by now.
	work := func(after string, client *x509.CertificateAuthority, servers func(i int) *x509.CertificateAuthority) {
		t.Helper()
		for i, m := range members {
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				require.NoError(c, m.answers(client, servers(i)), "%s after %s", m.name, after)
			}, time.Minute, 50*time.Millisecond)
		}
	}
	only := func(ca *x509.CertificateAuthority) func(int) *x509.CertificateAuthority {
		return func(int) *x509.CertificateAuthority { return ca }
	}
	work("the start", former, only(former))

	for _, m := range members {
		m.has(former, declared)
		require.Error(t, m.answers(declared, former), "a running etcd does not read the CAs again")
		m.restart()
		work(m.name+" has accepted", former, only(former))
		require.NoError(t, m.answers(declared, former))
	}
	for done, m := range members {
		m.has(declared, former)
		work(m.name+" has issued", former, func(i int) *x509.CertificateAuthority {
			if i <= done { // without a restart
				return declared
			}
			return former
		})
	}
	for _, m := range members {
		m.has(declared)
		require.NoError(t, m.answers(former, declared), "a running etcd does not read the CAs again")
		m.restart()
		work(m.name+" has dropped", declared, only(declared))
		require.Error(t, m.answers(former, declared), "it accepts a client of the former CA")
	}
}

// A member that issues before another one accepts is cut off from it once they connect again.
func TestEtcd_LosesAMemberThatIssuesBeforeTheOthersAccept(t *testing.T) {
	former, declared := newCA(t), newCA(t)
	members := securedMembers(t, 2, former)
	m, other := members[0], members[1]
	require.Eventually(t, func() bool { return m.answers(former, former) == nil && other.answers(former, former) == nil }, time.Minute,
		50*time.Millisecond)
	m.has(declared, former)
	m.restart()
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(other.dir + "/log")
		return err == nil && strings.Contains(string(text), "rejected connection on peer endpoint")
	}, time.Minute, 50*time.Millisecond)
	require.Error(t, m.answers(declared, declared), "it has no leader")
	m.has(former)
	m.restart()
	require.Eventually(t, func() bool { return m.answers(former, former) == nil }, time.Minute, 50*time.Millisecond)
}
