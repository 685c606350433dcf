package probe

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/health"
)

func TestShortLines_CutsOnlyLongLines(t *testing.T) {
	var out bytes.Buffer
	to := &shortLines{to: &out}
	long := strings.Repeat("x", maxLine+1)
	n, err := fmt.Fprintf(to, "one\n%s", long)
	require.NoError(t, err)
	assert.Equal(t, len("one\n")+len(long), n)
	fmt.Fprint(to, "more\ntwo\n\nthree")
	assert.Equal(t, "one\n"+long[:maxLine]+"\ntwo\n\nthree", out.String())
}

// Pulumi shows the last line of standard error, and stores standard output.
func TestGate_EndsItsProgressWithOneSentenceAndKeepsJSONOutOfIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	spec := encode(t, &r.spec)
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitOpen, run(t.Context(), []string{"gate"}, strings.NewReader(spec), &stdout, &stderr), stderr.String())
	assert.NotContains(t, stderr.String(), "{")
	lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	assert.Regexp(t, `^open after \d+\.\d s: \d+ checks passed$`, lines[len(lines)-1])
	report, err := health.ReportFrom(stdout.String())
	require.NoError(t, err)
	assert.Equal(t, health.Open, report.Outcome)
}

func TestGate_ThatFailsWritesNoJSON(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.kube.NotReady("etcd")
	r.spec.Timeout = 1
	spec := encode(t, &r.spec)
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitUnhealthy, run(t.Context(), []string{"gate"}, strings.NewReader(spec), &stdout, &stderr))
	assert.NotContains(t, stdout.String()+stderr.String(), "{")
	assert.Contains(t, stdout.String(), "should: the API server is ready")
	assert.Regexp(t, `slipway-probe gate: infra: closed after 0\.\d s: \d+ of \d+ checks failed`, stderr.String())
}
