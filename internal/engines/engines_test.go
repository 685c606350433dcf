package engines

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/probe"
)

func TestEngines_NeverQuoteAKubeconfig(t *testing.T) {
	const bad, want = "SECRET: [", "kubeconfig: is not a valid kubeconfig"
	require.EqualError(t, Inspect(t.Context(), bad, nil), want)
	_, err := BeginRemoval(probe.Target{Kubeconfig: bad}, io.Discard)
	require.EqualError(t, err, want)
}
