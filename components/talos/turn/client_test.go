package turn

import (
	"context"
	"crypto/tls"
	stdx509 "crypto/x509"
	"encoding/base64"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	"github.com/cosi-project/runtime/pkg/state/protobuf/server"
	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// api is a Talos API on the loopback. It models the services and the machine's stage, nothing else.
type api struct {
	machine.UnimplementedMachineServiceServer
	services []*machine.ServiceInfo
}

func (a *api) ServiceList(context.Context, *emptypb.Empty) (*machine.ServiceListResponse, error) {
	return &machine.ServiceListResponse{Messages: []*machine.ServiceList{{Services: a.services}}}, nil
}

// ApplyConfiguration answers that a configuration with the word reboot needs one.
func (a *api) ApplyConfiguration(
	_ context.Context, in *machine.ApplyConfigurationRequest,
) (*machine.ApplyConfigurationResponse, error) {
	mode := machine.ApplyConfigurationRequest_NO_REBOOT
	switch {
	case !in.GetDryRun():
		return nil, status.Error(codes.PermissionDenied, "the configuration would be changed")
	case strings.Contains(string(in.GetData()), "reboot"):
		mode = machine.ApplyConfigurationRequest_REBOOT
	}
	return &machine.ApplyConfigurationResponse{Messages: []*machine.ApplyConfiguration{{Mode: mode}}}, nil
}

func (a *api) Read(_ *machine.ReadRequest, out machine.MachineService_ReadServer) error {
	return out.Send(&common.Data{Bytes: []byte("1\n")})
}

// authority returns a new CA that signs certificates of servers and clients.
func authority(t *testing.T) *x509.CertificateAuthority {
	t.Helper()
	ca, err := x509.NewSelfSignedCertificateAuthority(x509.ECDSA(true))
	require.NoError(t, err)
	return ca
}

func leaf(t *testing.T, ca *x509.CertificateAuthority, opts ...x509.Option) *x509.PEMEncodedCertificateAndKey {
	t.Helper()
	pair, err := x509.NewKeyPair(ca, append(opts, x509.NotAfter(time.Now().Add(time.Hour)))...)
	require.NoError(t, err)
	return x509.NewCertificateAndKeyFromKeyPair(pair)
}

// serve starts the API of a machine in a stage, with mutual TLS, and returns its address.
func serve(t *testing.T, ca *x509.CertificateAuthority, stage runtime.MachineStage, services ...*machine.ServiceInfo) string {
	t.Helper()
	own := leaf(t, ca, x509.IPAddresses([]net.IP{net.IPv4(127, 0, 0, 1)}),
		x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageServerAuth}))
	pair, err := tls.X509KeyPair(own.Crt, own.Key)
	require.NoError(t, err)
	pool := stdx509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(ca.CrtPEM))

	status := runtime.NewMachineStatus()
	status.TypedSpec().Stage = stage
	resources := state.WrapCore(namespaced.NewState(inmem.Build))
	require.NoError(t, resources.Create(t.Context(), status))

	grpcServer := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	})))
	machine.RegisterMachineServiceServer(grpcServer, &api{services: services})
	v1alpha1.RegisterStateServer(grpcServer, server.NewState(resources))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = grpcServer.Serve(listener) }()
	t.Cleanup(grpcServer.Stop)
	return listener.Addr().String()
}

func credentialsFor(t *testing.T, ca *x509.CertificateAuthority) Credentials {
	t.Helper()
	user := leaf(t, ca, x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}))
	return Credentials{
		CA:          base64.StdEncoding.EncodeToString(ca.CrtPEM),
		Certificate: base64.StdEncoding.EncodeToString(user.Crt),
		Key:         base64.StdEncoding.EncodeToString(user.Key),
	}
}

func TestTurn_ReadsStageAndEtcdFromTheTalosAPIs(t *testing.T) {
	ca := authority(t)
	etcd := &machine.ServiceInfo{Id: "etcd", State: running, Health: &machine.ServiceHealth{Healthy: true}}
	turn := Turn{
		Credentials: credentialsFor(t, ca),
		Node:        serve(t, ca, runtime.MachineStageRunning, &machine.ServiceInfo{Id: "apid", State: running}, etcd),
		Others: []string{
			serve(t, ca, runtime.MachineStageRebooting, etcd),
			serve(t, ca, runtime.MachineStageRunning, &machine.ServiceInfo{Id: "etcd", State: "Preparing"}),
			serve(t, authority(t), runtime.MachineStageMaintenance), // has a CA of its own
			"127.0.0.1:1",
		},
	}
	apis, err := dial(t.Context(), turn)
	require.NoError(t, err)
	defer apis.Close()
	seen := turn.look(t.Context(), apis.look)
	assert.Equal(t, fine, seen[0])
	assert.Equal(t, "the machine is rebooting", seen[1].problem())
	assert.Equal(t, "etcd is Preparing", seen[2].problem())
	assert.Contains(t, seen[3].problem(), "no answer from the Talos API (")
	assert.Contains(t, seen[4].problem(), "no answer from the Talos API (")
}

func TestTurn_OfANodeThatIsNotBootstrappedComesAtOnceOverTheAPI(t *testing.T) {
	ca := authority(t)
	turn := Turn{
		Credentials: credentialsFor(t, ca),
		Node:        serve(t, ca, runtime.MachineStageRunning, &machine.ServiceInfo{Id: "etcd", State: "Preparing"}),
		Others:      []string{serve(t, ca, runtime.MachineStageRunning)},
	}
	require.NoError(t, turn.Await(t.Context()))
}

func TestTurn_ErrorsContainNoCredentials(t *testing.T) {
	err := Turn{
		Credentials: Credentials{CA: "SENSITIVE", Certificate: "SENSITIVE", Key: "SENSITIVE"},
		Node:        "127.0.0.1:1", Others: []string{"127.0.0.1:2"},
	}.Await(t.Context())
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "SENSITIVE")
}

func TestQueue_AsksTalosWhichChangesReboot(t *testing.T) {
	ca := authority(t)
	kubelet := &machine.ServiceInfo{Id: "kubelet", State: running, Health: &machine.ServiceHealth{Healthy: true}}
	change := func(name, configuration string) Change {
		return Change{Credentials: credentialsFor(t, ca), Node: serve(t, ca, runtime.MachineStageRunning, kubelet), Name: name,
			Configuration: configuration}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	q := &Queue{}
	require.NoError(t, q.Await(ctx, change("worker-1", "reboot")))
	require.NoError(t, q.Await(ctx, change("worker-2", "label")), "changes without a reboot do not wait")
	gone := change("worker-3", "reboot")
	gone.Node = "127.0.0.1:1"
	require.NoError(t, q.Await(ctx, gone), "it is out of service already")
	short, end := context.WithTimeout(ctx, 300*time.Millisecond)
	defer end()
	require.ErrorIs(t, q.Await(short, change("worker-4", "reboot")), context.DeadlineExceeded)
}
