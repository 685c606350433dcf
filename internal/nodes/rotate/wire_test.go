package rotate

import (
	"context"
	"crypto/tls"
	stdx509 "crypto/x509"
	"encoding/base64"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	cosiapi "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	cosi "github.com/cosi-project/runtime/pkg/state/protobuf/server"
	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	configres "github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/live"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/fakes/talosapitest"
)

// node is the part of a node's Talos API that a rotation uses. Its certificate and the clients that it accepts follow its configuration at
// once.
type node struct {
	machine.UnimplementedMachineServiceServer
	resources state.State
	authority map[string]*x509.PEMEncodedCertificateAndKey // by certificate

	mu      sync.Mutex
	config  *v1alpha1.Config
	applied *machine.ApplyConfigurationRequest
	err     error // of the next configuration
}

func (n *node) Version(context.Context, *emptypb.Empty) (*machine.VersionResponse, error) {
	return &machine.VersionResponse{}, nil
}

func (n *node) ApplyConfiguration(
	ctx context.Context, in *machine.ApplyConfigurationRequest,
) (*machine.ApplyConfigurationResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err != nil {
		return nil, n.err
	}
	n.applied = in
	return &machine.ApplyConfigurationResponse{}, n.set(ctx, in.GetData())
}

func (n *node) set(ctx context.Context, text []byte) error {
	provider, err := configloader.NewFromBytes(text)
	if err != nil {
		return err
	}
	n.config = provider.RawV1Alpha1()
	current := configres.NewMachineConfig(provider)
	if err := n.resources.Destroy(ctx, current.Metadata()); err != nil && !state.IsNotFoundError(err) {
		return err
	}
	return n.resources.Create(ctx, current)
}

// tls is the server side for a new connection.
func (n *node) tls(*tls.ClientHelloInfo) (*tls.Config, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	pool := stdx509.NewCertPool()
	pool.AppendCertsFromPEM(n.config.MachineConfig.MachineCA.Crt)
	for _, accepted := range n.config.MachineConfig.MachineAcceptedCAs {
		pool.AppendCertsFromPEM(accepted.Crt)
	}
	ca, err := x509.NewCertificateAuthorityFromCertificateAndKey(n.authority[string(n.config.MachineConfig.MachineCA.Crt)])
	if err != nil {
		return nil, err
	}
	own, err := x509.NewKeyPair(ca, x509.IPAddresses([]net.IP{net.IPv4(127, 0, 0, 1)}), x509.NotAfter(time.Now().Add(time.Hour)),
		x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageServerAuth}))
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		Certificates: []tls.Certificate{*own.Certificate}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13,
	}, nil
}

const machineConfig = `version: v1alpha1
machine:
  type: controlplane
  token: aaaaaa.bbbbbbbbbbbbbbbb
cluster:
  controlPlane: {endpoint: "https://10.25.11.10:6443"}
---
apiVersion: v1alpha1
kind: HostnameConfig
hostname: cp-1
`

// serve starts a node with the first of two authorities.
func serve(t *testing.T) (*node, talosClients, turn.Node) {
	t.Helper()
	n := &node{resources: state.WrapCore(namespaced.NewState(inmem.Build)), authority: map[string]*x509.PEMEncodedCertificateAndKey{}}
	b64 := base64.StdEncoding.EncodeToString
	s := &Spec{Target: turn.Target{Cluster: "infra"}, Of: Talos}
	var first *x509.PEMEncodedCertificateAndKey
	for range 2 {
		made, err := secrets.NewTalosCA(time.Now())
		require.NoError(t, err)
		ca := x509.NewCertificateAndKeyFromCertificateAuthority(made)
		admin, err := secrets.NewAdminCertificateAndKey(time.Now(), ca, role.MakeSet(role.Admin), time.Hour)
		require.NoError(t, err)
		n.authority[string(ca.Crt)] = ca
		s.Authorities = append(s.Authorities, Authority{
			Certificate: b64(ca.Crt), Key: b64(ca.Key), ClientCertificate: b64(admin.Crt), ClientKey: b64(admin.Key),
		})
		if first == nil {
			first = ca
		}
	}
	provider, err := configloader.NewFromBytes([]byte(machineConfig))
	require.NoError(t, err)
	provider, err = provider.PatchV1Alpha1(func(c *v1alpha1.Config) error {
		c.MachineConfig.MachineCA = first
		return nil
	})
	require.NoError(t, err)
	text, err := provider.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	require.NoError(t, err)
	require.NoError(t, n.set(t.Context(), text))

	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{GetConfigForClient: n.tls, MinVersion: tls.VersionTLS13})))
	machine.RegisterMachineServiceServer(server, n)
	cosiapi.RegisterStateServer(server, cosi.NewState(n.resources))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	at := turn.Node{Name: "cp-1", Role: cluster.ControlPlane, Address: talosapitest.Address}
	s.Nodes = []turn.Node{at}
	require.NoError(t, probe.Complete(s))
	c := newTalosClients(s)
	c.options = []grpc.DialOption{talosapitest.To(listener.Addr())}
	t.Cleanup(c.close)
	return n, c, at
}

func TestClients_ReplaceTheCAAndNothingElse(t *testing.T) {
	n, c, at := serve(t)
	for _, pass := range []Pass{Accept, Issue, Drop} {
		now, kind, err := c.Look(t.Context(), at)
		require.NoError(t, err, pass)
		assert.Equal(t, cluster.ControlPlane, kind)
		next, changes := pass.Next(now, c.certificates)
		require.True(t, changes, pass)
		require.NoError(t, c.Apply(t.Context(), at, next), pass)
		assert.Equal(t, machine.ApplyConfigurationRequest_NO_REBOOT, n.applied.GetMode())
		assert.Contains(t, string(n.applied.GetData()), "kind: HostnameConfig", "other documents stay")
		assert.Contains(t, string(n.applied.GetData()), "token: aaaaaa.bbbbbbbbbbbbbbbb")
		require.NoError(t, c.Ask(t.Context(), at, 1, 0, 1), pass)
	}
	assert.Equal(t, n.authority[c.certificates[1]], n.config.MachineConfig.MachineCA)
	assert.Empty(t, n.config.MachineConfig.MachineAcceptedCAs)
}

func TestClients_AskWithOneCertificateAndTrustSomeServers(t *testing.T) {
	_, c, at := serve(t)
	require.NoError(t, c.Ask(t.Context(), at, 0, 0))
	require.NoError(t, c.Ask(t.Context(), at, 0, 1, 0))
	require.ErrorContains(t, c.Ask(t.Context(), at, 0, 1), "certificate signed by unknown authority")
	// With TLS 1.3 the server refuses a client after the client's handshake: what it writes meanwhile can fail before it has read why.
	err := c.Ask(t.Context(), at, 1, 0)
	require.Error(t, err)
	require.Regexp(t, "unknown certificate authority|broken pipe|connection reset by peer", err.Error())
	c.options = []grpc.DialOption{talosapitest.To(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1})}
	_, _, err = c.Look(t.Context(), at)
	require.ErrorContains(t, err, "connection refused")
}

func TestClients_TellARefusedConfigurationFromABusyNode(t *testing.T) {
	n, c, at := serve(t)
	now, _, err := c.Look(t.Context(), at)
	require.NoError(t, err)
	n.err = status.Error(codes.InvalidArgument, "unknown key")
	err = c.Apply(t.Context(), at, now)
	require.EqualError(t, err, "unknown key")
	require.True(t, errors.As(err, new(live.RefusedError)))
	n.err = status.Error(codes.Aborted, "later")
	err = c.Apply(t.Context(), at, now)
	require.EqualError(t, err, "later")
	require.False(t, errors.As(err, new(live.RefusedError)))
}

func TestClients_GiveTheKeyToControlPlanesOnly(t *testing.T) {
	_, c, _ := serve(t)
	for kind, want := range map[string]string{"controlplane": c.key, "worker": ""} {
		config := &v1alpha1.Config{MachineConfig: &v1alpha1.MachineConfig{MachineType: kind}, ClusterConfig: &v1alpha1.ClusterConfig{}}
		require.NoError(t, c.set(config, Trust{Issuing: c.certificates[1], Accepted: c.certificates[:1]}))
		assert.Equal(t, want, string(config.MachineConfig.MachineCA.Key), kind)
		assert.Equal(t, c.certificates[1], string(config.MachineConfig.MachineCA.Crt))
		assert.Equal(t, c.certificates[0], string(config.MachineConfig.MachineAcceptedCAs[0].Crt))
	}
}

func TestClients_OfKubernetesChangeTheClustersCA(t *testing.T) {
	_, c, _ := serve(t)
	c.place = listed(ofCluster)
	machineCA := &x509.PEMEncodedCertificateAndKey{Crt: []byte("os")}
	for kind, want := range map[string]string{"controlplane": c.key, "worker": ""} {
		in := &v1alpha1.Config{ClusterConfig: &v1alpha1.ClusterConfig{}}
		in.MachineConfig = &v1alpha1.MachineConfig{MachineType: kind, MachineCA: machineCA}
		trust := Trust{Issuing: c.certificates[1], Accepted: c.certificates[:1]}
		require.NoError(t, c.set(in, trust))
		assert.Equal(t, want, string(in.ClusterConfig.ClusterCA.Key), kind)
		assert.Equal(t, machineCA, in.MachineConfig.MachineCA)
		assert.Equal(t, trust, c.trust(in), kind)
	}
}

// A control plane that boots has no certificates of etcd yet, although its API answers.
func TestClients_SayThatEtcdHasNoCertificateYet(t *testing.T) {
	_, c, at := serve(t)
	etcd := etcdClients{clients: c.clients}
	assert.Equal(t, "its etcd has no certificate of the CA that issues yet", etcd.Serves(t.Context(), at, Trust{Issuing: c.certificates[0]}))
}
