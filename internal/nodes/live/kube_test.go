package live

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/tests/fakes/talosapitest"
)

// A look at the cluster takes ten seconds at most, and a machine that is switched off needs five until the next one is asked.
func TestCluster_GetsItsKubeconfigFromTheOneControlPlaneThatAnswers(t *testing.T) {
	live, _, kube := rig(t)
	kube.answers["GET /api/v1/nodes"] = `{"kind":"NodeList","apiVersion":"v1","items":[]}`
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and says nothing
	require.NoError(t, err)
	defer silent.Close()
	_, config := talosapitest.Serve(t, true, func(*grpc.Server) {})
	for _, name := range []string{"127.0.0.2", "127.0.0.3"} {
		address := netip.MustParseAddr(name)
		live.talos[address], err = talosapi.DialEndpoint(t.Context(), config, name, talosapitest.To(silent.Addr()))
		require.NoError(t, err)
		live.kube.addresses = slices.Insert(live.kube.addresses, 0, address)
	}
	ctx, cancel := context.WithTimeout(t.Context(), talosapi.CallTimeout)
	defer cancel()
	_, err = live.Nodes(ctx)
	require.NoError(t, err)
}

// refusing returns an API server that accepts no client.
func refusing(t *testing.T) server {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(api.Close)
	kubeconfig := fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: {server: %q}}],
users: [{name: a, user: {token: t}}], contexts: [{name: a, context: {cluster: a, user: a}}]}`, api.URL)
	client, err := kubeapi.New(kubeconfig, requestTimeout)
	require.NoError(t, err)
	return server{netip.MustParseAddr("127.0.0.2"), client}
}

func TestCluster_AsksAnotherAPIServerAfterOneThatDoesNotAcceptIt(t *testing.T) {
	live, _, kube := rig(t)
	kube.answers["GET /api/v1/nodes"] = `{"kind":"NodeList","apiVersion":"v1","items":[]}`
	servers, _, err := live.kube.connect(t.Context())
	require.NoError(t, err)
	live.kube.servers = slices.Insert(servers, 0, refusing(t))
	_, err = live.Nodes(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, live.kube.answers)
}

func TestCluster_GetsAnotherKubeconfigOnceNoAPIServerAcceptsIt(t *testing.T) {
	live, _, kube := rig(t)
	kube.answers["GET /api/v1/nodes"] = `{"kind":"NodeList","apiVersion":"v1","items":[]}`
	live.kube.servers, live.kube.answers = []server{refusing(t), refusing(t)}, 1
	_, err := live.Nodes(t.Context())
	require.ErrorContains(t, err, "the server has asked for the client to provide credentials")
	_, err = live.Nodes(t.Context())
	require.NoError(t, err)
}
