package probe

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/fakes/fakecluster"
)

// recorded is a file of an update that package picture has recorded for its own tests.
func recorded(name string) string {
	return filepath.Join("..", "..", "internal", "health", "picture", "testdata", name)
}

// page runs the command and returns its exit code, the page and what it says.
func page(t *testing.T, stdin string, args ...string) (code int, page, said string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(stdin), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func TestPicture_ShowsGatesNodesAndMeshFromTheStacksOutputs(t *testing.T) {
	state, err := os.ReadFile(recorded("up.state.json"))
	require.NoError(t, err)
	code, html, said := page(t, string(state), "picture",
		"--events", recorded("up.events.json"), "--state", "-", "--spans", recorded("up.spans.json"))
	assert.Equal(t, exitOpen, code, said)
	for _, want := range []string{
		"infra-gate-probe", `id="gates"`, "Control planes · etcd members: 3 of 3", "<desc id=\"mesh-says\">", "critical path", "Machines at work",
	} {
		assert.Contains(t, html, want)
	}
	assert.NotContains(t, html, "CANARY")

	code, html, said = page(t, "", "picture", "--events", recorded("up.events.json"))
	assert.Equal(t, exitOpen, code, said)
	assert.Contains(t, html, "infra-gate-probe")
	assert.NotContains(t, html, `id="gates"`)
}

func TestPicture_RefusesWrongFilesAllAtOnce(t *testing.T) {
	code, html, said := page(t, "{}", "picture", "--state", "-", "--spans", "missing")
	assert.Equal(t, exitUsage, code)
	assert.Empty(t, html)
	for _, want := range []string{
		"--events: is missing; give the file", "--state: -: state: is not the output of pulumi stack export", "--spans: open missing",
	} {
		assert.Contains(t, said, want)
	}
}

func TestGate_WritesAPageWithoutSecrets(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	fakecluster.PutNode(t, r.kube, members[1], "False")
	spec := encode(t, &r.spec)
	code, html, said := page(t, spec, "gate", "--once", "-o", "html")
	assert.Equal(t, exitUnhealthy, code, said)
	for _, want := range []string{
		"gate of infra", "infra-worker-1, worker, 10.25.11.21", "etcd members: 1 of 1", "every declared node is Ready",
	} {
		assert.Contains(t, html, want)
	}
	for _, secret := range []string{"fake-token", "BEGIN", "LS0tLS1"} {
		assert.NotContains(t, html, secret)
	}
}
