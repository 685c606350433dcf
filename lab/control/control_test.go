package control

import (
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/fault"
)

func TestClient_SwitchesFaultsAndSeesTheStatus(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	faults := &fault.Set{}
	server := &http.Server{Handler: Handler(func() Status {
		return Status{Faults: faults.List(), VMs: []VM{{ID: 1111, Name: "infra-cp-1"}}}
	}, faults)}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	c := NewClient(socket)

	down := fault.Fault{Kind: fault.KubeletDown, Target: "infra-worker-1"}
	all, err := c.FaultOn(t.Context(), down)
	require.NoError(t, err)
	require.Equal(t, []fault.Fault{down}, all)
	s, err := c.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, "infra-cp-1", s.VMs[0].Name)
	require.Equal(t, all, s.Faults)

	_, err = c.FaultOff(t.Context(), fault.KubeletDown, "infra-worker-2")
	require.ErrorContains(t, err, "not on")
	all, err = c.FaultOff(t.Context(), "", "")
	require.NoError(t, err)
	require.Empty(t, all)
	_, err = c.FaultOn(t.Context(), fault.Fault{Kind: "coffee"})
	require.ErrorContains(t, err, "unknown")
}
