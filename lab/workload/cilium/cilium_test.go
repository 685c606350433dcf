package cilium

import (
	"bytes"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/lab/fault"
)

func TestCilium_HealthNamesThePeerWhoseAgentIsGone(t *testing.T) {
	c := cluster()
	a, b := agentOn(t, c, "cp-1"), agentOn(t, c, "worker-1")
	health := func(healthy bool) (h healthStatus) {
		require.Eventually(t, func() bool {
			h = healthStatus{}
			ask(t, a, &h, "cilium-health status -o json")
			if len(h.Nodes) < 2 {
				return false
			}
			peer := append(h.Nodes[1].Host.all(), h.Nodes[1].HealthEndpoint.all()...)
			all, done := probed(h)
			return all == done && !slices.ContainsFunc(peer, func(p *pathStatus) bool { return p.reachable() != healthy })
		}, time.Minute, time.Millisecond)
		return h
	}
	h := health(true)
	require.Equal(t, "infra/cp-1", h.Local.Name)
	require.Len(t, h.Nodes, 2)
	for _, n := range h.Nodes {
		require.Empty(t, n.Host.PrimaryAddress.HTTP.Status)
		require.Empty(t, n.HealthEndpoint.PrimaryAddress.ICMP.Status)
		require.NotZero(t, n.Host.PrimaryAddress.ICMP.Latency)
	}
	b.Exit(1)
	require.Eventually(t, func() bool { return !c.Cilium.Ready("worker-1") }, time.Minute, time.Millisecond)
	peer := health(false).Nodes[1]
	require.Equal(t, "infra/worker-1", peer.Name)
	require.Equal(t, "10.25.11.21", peer.Host.PrimaryAddress.IP)
	require.Contains(t, peer.Host.PrimaryAddress.HTTP.Status, "connection refused")
	require.NotEmpty(t, peer.HealthEndpoint.PrimaryAddress.ICMP.Status)
	require.Empty(t, peer.Host.PrimaryAddress.ICMP.Status, "the host still answers")

	var out bytes.Buffer
	_, err := a.Exec(t.Context(), []string{"cilium-dbg", "status", "--brief"}, nil, &out, io.Discard)
	require.NoError(t, err)
	require.Equal(t, "OK\n", out.String())
}

func TestCilium_AnAgentCrashesUnderItsFaultAndOnlyThere(t *testing.T) {
	c := cluster()
	a, b := agentOn(t, c, "cp-1"), agentOn(t, c, "worker-1")
	require.NoError(t, c.Faults.On(fault.Fault{Kind: fault.CiliumAgentCrash, Target: "worker-1"}))
	select {
	case <-b.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("the agent lives on")
	}
	require.Equal(t, 1, b.ExitCode())
	require.True(t, a.Ready())
}
