//go:build e2e

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLifecycle_KubeletsGetTheCertificatesThatTheyAskFor makes a kubelet ask the cluster's CA for the certificate of its API. Without
// kubernetes.metricsServer nobody approves that, and nobody gets an answer of the kubelet. With it, the gate approves.
func TestLifecycle_KubeletsGetTheCertificatesThatTheyAskFor(t *testing.T) {
	t.Parallel()
	l := labOfShape(t, "certificates", func(s settings) {
		oneNode(s)
		s.set("talos", map[string]any{"kubelet": map[string]any{"extraArgs": map[string]any{"rotate-server-certificates": "true"}}})
		s.set("readiness", map[string]any{"timeout": "90s"})
	})
	l.fails("remote error: tls: internal error")
	const conditions = "{.items[*].status.conditions[*].type}"
	require.Empty(t, l.field("certificatesigningrequests", conditions), "somebody has decided")

	l.declare("kubernetes", map[string]any{"metricsServer": true})
	l.upTo("gate-probe", true)
	require.Equal(t, "Approved", l.field("certificatesigningrequests", conditions))
	require.NotEmpty(t, l.kubectl("logs", "--namespace=kube-system", "daemonset/cilium", "--tail=1"))
}
