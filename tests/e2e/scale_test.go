//go:build matrix

package e2e

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestScale creates infra with increasing numbers of nodes, and reports time and memory. The figures depend on this machine and do
// not fail the test. It fails if a size does not come up, or if a second run changes anything.
func TestScale(t *testing.T) {
	for _, nodes := range []int{5, 20, 100} {
		t.Run(fmt.Sprintf("%dNodes", nodes), func(t *testing.T) {
			l := startLab(t, fmt.Sprintf("scale-%d", nodes))
			editStackFile(t, l.stackFile("infra"), func(s settings) { widen(s, nodes) })

			timed := func(what string, args ...string) {
				start := time.Now()
				l.pulumi(append(args, "--stack", "infra")...)
				now, peak := l.memory()
				t.Logf("%3d nodes: %-10s %6.1f s, lab's memory %4d MiB, peak %4d MiB", nodes, what, time.Since(start).Seconds(), now>>20, peak>>20)
			}
			timed("preview", "preview")
			timed("up", "up", "--yes", "--skip-preview")
			timed("up again", "up", "--yes", "--skip-preview", "--expect-no-changes")
			timed("preview", "preview", "--expect-no-changes")

			out := l.in("pulumi", "stack", "output", "gateReport", "--stack", "infra")
			t.Logf("%3d nodes: gate %s", nodes, out[:min(len(out), 600)])
		})
	}
}

// memory returns the memory of the whole lab in bytes, now and at its peak.
func (l *lab) memory() (now, peak int64) {
	l.t.Helper()
	out, err := l.cmd(l.t.Context(), "status", "--json").Output()
	require.NoError(l.t, err)
	var s struct{ Memory, PeakMemory int64 }
	require.NoError(l.t, json.Unmarshal(out, &s))
	return s.Memory, s.PeakMemory
}
