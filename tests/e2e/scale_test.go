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
// not fail the test. It fails if a size does not come up, or if a second up changes anything.
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

// widen adds workers to a stack until it has a number of nodes.
func widen(s settings, nodes int) {
	var list []any
	for i := range nodes - len(s.pool(0)["nodes"].([]any)) {
		address := 21 + i
		if address >= 100 { // the load balancers' pool begins there
			address += 51
		}
		list = append(list, map[string]any{
			"name": fmt.Sprintf("infra-worker-%d", i+1), "host": fmt.Sprintf("pve%d", i%3+1), "vmId": 2000 + i,
			"mac": fmt.Sprintf("BC:24:11:00:02:%02X", i), "address": fmt.Sprintf("10.25.11.%d", address),
		})
	}
	s.pool(1)["nodes"] = list
}
