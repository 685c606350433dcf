package world

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/lab/wait"
)

// memory measures the memory of all processes in the lab's pid namespace. Shared pages are counted once.
type memory struct {
	mu        sync.Mutex
	now, peak int64 // bytes
}

// sample measures until ctx ends. It can miss a peak that is shorter than the period.
func (m *memory) sample(ctx context.Context) {
	for more := true; more; more = wait.Pause(ctx, 2*time.Second) {
		total := int64(0)
		paths, _ := filepath.Glob("/proc/[0-9]*/smaps_rollup") // the pattern is valid
		for _, path := range paths {
			total += pss(path)
		}
		m.mu.Lock()
		m.now, m.peak = total, max(m.peak, total)
		m.mu.Unlock()
	}
}

func (m *memory) get() (now, peak int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now, m.peak
}

// pss is the proportional set size of a process in bytes; 0 if it has ended.
func pss(path string) int64 {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(data) {
		var kib int64
		if n, _ := fmt.Sscanf(string(line), "Pss: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}
