package kubelet

import (
	"io"
	"net/http"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServer_OnlyTheAPIServerAndAdministratorsGetIn(t *testing.T) {
	w := newWorld(t)
	w.node(t)
	w.run(t, agentPod())
	w.eventually(t, func() bool { s := w.pod(t, "cilium-x").Status; return podReady(&s) })
	url := "https://" + netip.AddrPortFrom(w.ip, port).String() + "/containerLogs/kube-system/cilium-x/cilium-agent?tailLines=1"
	for _, who := range []struct {
		name, group string
		status      int
	}{
		{"", "", http.StatusUnauthorized},
		{"system:node:infra-worker-2", "system:nodes", http.StatusForbidden},
		{"apiserver-kubelet-client", "x", http.StatusOK},
		{"admin", "system:masters", http.StatusOK},
	} {
		transport := &http.Transport{TLSClientConfig: w.plane.client(t, who.name, who.group)}
		res, err := (&http.Client{Transport: transport}).Get(url)
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		transport.CloseIdleConnections()
		require.Equal(t, who.status, res.StatusCode, string(body))
		if who.status == http.StatusOK {
			require.Contains(t, string(body), "Initializing daemon completed")
		}
	}
}
