package live

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

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
