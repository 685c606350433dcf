package kubelet

import (
	"io"
	"net/http"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// caller sends requests to a kubelet.
type caller struct{ name, group, token string }

func (w *world) get(t *testing.T, who caller, path string) (int, string) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: w.plane.client(t, who.name, who.group)}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+netip.AddrPortFrom(w.ip, port).String()+path, nil)
	require.NoError(t, err)
	if who.token != "" {
		req.Header.Set("Authorization", "Bearer "+who.token)
	}
	res, err := (&http.Client{Transport: transport}).Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(body)
}

// TestServer_AsksTheAPIServerWhoMayDoWhat checks the form of a kubelet's answers: a client is told which permission it
// lacks.
func TestServer_AsksTheAPIServerWhoMayDoWhat(t *testing.T) {
	w := newWorld(t)
	w.allowed = map[string]bool{metricsUser + " get metrics": true, "reader get pods": true}
	w.node(t)
	w.run(t, agentPod())
	w.eventually(t, func() bool { s := w.pod(t, "cilium-x").Status; return podReady(&s) })
	const logs = "/containerLogs/kube-system/cilium-x/cilium-agent?tailLines=1"
	metrics := caller{token: metricsToken}
	for _, tc := range []struct {
		who    caller
		path   string
		status int
		says   string
	}{
		{caller{}, logs, http.StatusUnauthorized, "Unauthorized"},
		{caller{token: "made up"}, logs, http.StatusUnauthorized, "Unauthorized"},
		{caller{}, "/healthz", http.StatusUnauthorized, "Unauthorized"},
		{caller{name: "system:node:infra-worker-2", group: "system:nodes"}, logs, http.StatusForbidden,
			"Forbidden (user=system:node:infra-worker-2, verb=get, resource=nodes, subresource(s)=[proxy])"},
		{caller{name: "apiserver-kubelet-client", group: "system:masters"}, logs, http.StatusOK, "Initializing daemon completed"},
		{caller{name: "admin", group: "system:masters"}, "/healthz", http.StatusOK, "ok"},
		{metrics, "/metrics/resource", http.StatusNotImplemented, "do not model /metrics/resource"},
		{metrics, "/stats/summary", http.StatusForbidden, "Forbidden (user=" + metricsUser + ", verb=get, resource=nodes, subresource(s)=[stats])"},
		{metrics, "/metrics", http.StatusNotImplemented, "do not model /metrics"},
		{caller{name: "reader"}, "/pods", http.StatusNotImplemented, "do not model /pods"},
		{caller{name: "reader"}, "/healthz", http.StatusForbidden, "subresource(s)=[healthz proxy]"},
	} {
		status, body := w.get(t, tc.who, tc.path)
		require.Equal(t, tc.status, status, "%v %s: %s", tc.who, tc.path, body)
		require.Contains(t, body, tc.says)
	}
	before := w.asked
	status, _ := w.get(t, metrics, "/metrics/resource")
	require.Equal(t, http.StatusNotImplemented, status)
	require.Equal(t, before, w.asked, "a kubelet remembers the answer")
}
