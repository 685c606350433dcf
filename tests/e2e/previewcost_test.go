//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPreview_OfBothStacksIsCheap runs `make preview` of the stack files as they are, mesh, storage and handover included, without any
// network but loopback. It reports what a preview costs, with nothing compiled, with everything, and for many nodes. Only the preview's own
// CPU time is limited, which depends less on other processes than time.
func TestPreview_OfBothStacksIsCheap(t *testing.T) {
	const reported, warm = 0, 90 * time.Second // 30 s of two cores, and half of it: beside other work, the same takes more
	l := startLab(t, "preview-cost")
	clone := cloneOf(t)
	file := func(stack string) string { return filepath.Join(clone, "Pulumi."+stack+".yaml") }
	cache := "GOCACHE=" + filepath.Join(t.TempDir(), "cache")
	preview := func(what string, limit time.Duration) string {
		start := time.Now()
		out, err := l.try("env", cache, "unshare", "--map-root-user", "--net", "bash", "-c",
			"ip link set lo up; make -C "+clone+" preview BASE=HEAD; code=$?; times; exit $code")
		require.NoError(t, err, end(out))
		cpu := children(t, out)
		comment, err := os.ReadFile(filepath.Join(clone, "bin", "preview", "preview.md"))
		require.NoError(t, err)
		t.Logf("%-36s %6.1f s, %6.1f s of CPU, a comment of %d bytes", what, time.Since(start).Seconds(), cpu.Seconds(), len(comment))
		assert.True(t, limit == reported || cpu < limit, what)
		return string(comment)
	}

	assert.Contains(t, preview("nothing, nothing compiled:", reported), "\nNothing changes in `apps`, `infra`.\n")
	assert.Contains(t, preview("nothing:", warm), "\nNothing changes in `apps`, `infra`.\n")

	for _, stack := range []string{"infra", "apps"} {
		editStackFile(t, file(stack), moreMemory)
	}
	comment := preview("memory of the workers of both:", warm)
	assert.Contains(t, comment, "Proxmox reboots `infra-worker-1`")
	assert.Contains(t, comment, "Proxmox reboots `apps-worker-1`")

	editStackFile(t, file("infra"), func(s settings) { widen(s, 100) })
	assert.Contains(t, preview("95 nodes more:", 2*warm), "infra-worker-97")
	commitAll(t, clone, "100 nodes")
	editStackFile(t, file("infra"), func(s settings) { s.pool(1)["memory"] = "32GiB" })
	assert.Contains(t, preview("memory of 97 workers:", 4*warm), "Proxmox reboots `infra-worker-1`")
}

// children returns the CPU time of a shell's children, the last line that the shell's times has printed.
func children(t *testing.T, out string) time.Duration {
	t.Helper()
	all := regexp.MustCompile(`(?m)^(\d+)m([\d.]+)s (\d+)m([\d.]+)s$`).FindAllStringSubmatch(out, -1)
	require.NotEmpty(t, all, end(out))
	var total time.Duration
	for i := 1; i < 5; i += 2 {
		minutes, err := strconv.Atoi(all[len(all)-1][i])
		require.NoError(t, err)
		seconds, err := strconv.ParseFloat(all[len(all)-1][i+1], 64)
		require.NoError(t, err)
		total += time.Duration(minutes)*time.Minute + time.Duration(seconds*float64(time.Second))
	}
	return total
}
