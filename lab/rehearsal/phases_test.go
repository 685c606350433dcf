package rehearsal

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadPhases_GivesEachComponentItsSpanInOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events")
	require.NoError(t, os.WriteFile(path, []byte(`{"timestamp":10,"resourcePreEvent":{"metadata":{"op":"create","urn":"urn:pulumi:infra::slipway::slipway:talos:TalosCluster$talos:machine/secrets:Secrets::x"}}}
{"timestamp":11,"diagnosticEvent":{"message":"waiting"}}
{"timestamp":12,"resourcePreEvent":{"metadata":{"op":"create","urn":"urn:pulumi:infra::slipway::pulumi:providers:kubernetes::k"}}}
{"timestamp":13,"resourcePreEvent":{"metadata":{"op":"create","urn":"urn:pulumi:infra::slipway::slipway:cilium:CiliumCore$kubernetes:helm.sh/v3:Release::cilium"}}}
{"timestamp":14,"resOutputsEvent":{"metadata":{"op":"same","urn":"urn:pulumi:infra::slipway::slipway:gitops:GitOpsHandover$kubernetes:core/v1:ConfigMap::s"}}}
{"timestamp":15,"resOutputsEvent":{"metadata":{"op":"create","urn":"urn:pulumi:infra::slipway::slipway:talos:TalosCluster$talos:machine/secrets:Secrets::x"}}}
`), 0o600))
	phases, err := readPhases(path)
	require.NoError(t, err)
	require.Equal(t, []phase{
		{name: "TalosCluster", first: time.Unix(10, 0), last: time.Unix(15, 0)},
		{name: "CiliumCore", first: time.Unix(13, 0), last: time.Unix(13, 0)},
	}, phases)
}
