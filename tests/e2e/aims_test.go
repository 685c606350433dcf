//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Aims of the product, on a computer of two cores that runs nothing but the lab.
const (
	toFirstRequest = 10 * time.Second // from the binary, without Go and in a new repository, to the first request to Proxmox VE
	runOfNothing   = 8 * time.Second  // `up` of a committed stack in which nothing changes
)

// inTime fails the test if something takes longer than its aim each time that it is tried. While more than twice as many processes as cores
// want to run, times mean nothing: they are logged, and not judged.
func inTime(t *testing.T, what string, aim time.Duration, tries int, run func() time.Duration) {
	t.Helper()
	cores, quickest, busiest := float64(runtime.NumCPU()), time.Duration(0), 0.0
	for try := range tries {
		busiest = max(busiest, processes(t))
		if took := run(); try == 0 || took < quickest {
			quickest = took
		}
		if quickest <= aim {
			break
		}
	}
	t.Logf("%5.1f s  %s; the aim is %.0f s", quickest.Seconds(), what, aim.Seconds())
	if quickest > aim && busiest > 2*cores {
		t.Logf("not judged: the load is %.1f on %.0f cores", busiest, cores)
		return
	}
	assert.LessOrEqual(t, quickest, aim, what)
}

// processes is how many processes have wanted to run in the last minute, those of the lab included.
func processes(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	require.NoError(t, err)
	minute, _, _ := strings.Cut(string(text), " ")
	number, err := strconv.ParseFloat(minute, 64)
	require.NoError(t, err)
	return number
}

// firstRequest is when the simulated Proxmox VE got its first request.
func (l *lab) firstRequest() time.Time {
	l.t.Helper()
	log, err := os.ReadFile(filepath.Join(l.home(), "logs", "lab.log"))
	require.NoError(l.t, err)
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, `msg="first request"`) {
			stamp, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
			at, err := time.Parse(time.RFC3339, stamp)
			require.NoError(l.t, err)
			return at
		}
	}
	require.Fail(l.t, "Proxmox VE got no request")
	return time.Time{}
}

// withoutGo is a folder with all programs of PATH but Go's.
func withoutGo(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, from := range filepath.SplitList(os.Getenv("PATH")) {
		programs, _ := os.ReadDir(from) // not each folder of PATH exists
		for _, program := range programs {
			if name := program.Name(); name != "go" && name != "gofmt" {
				_ = os.Symlink(filepath.Join(from, name), filepath.Join(folder, name)) // the first program of a name counts
			}
		}
	}
	return folder
}
