package talos_test

import (
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"

	"github.com/slipway-platform/slipway/lab/talos"
)

// BenchmarkSite_AHundredNodes starts three control planes and 97 workers, from power-on to running, and reports
// goroutines and live memory of the running site, the total CPU time, and the CPU time of a second at rest.
func BenchmarkSite_AHundredNodes(b *testing.B) {
	const controlPlanes, workers = 3, 97
	for b.Loop() {
		w := newWorld(b)
		memory, goroutines, cpu := live(), runtime.NumGoroutine(), processorTime()
		var up sync.WaitGroup
		hosts := map[byte]configmachine.Type{}
		for i := range controlPlanes {
			hosts[byte(11+i)] = configmachine.TypeControlPlane
		}
		for i := range workers {
			hosts[byte(21+i)] = configmachine.TypeWorker
		}
		configs := map[byte][]byte{}
		for host, kind := range hosts {
			configs[host] = w.config(kind, host)
		}
		for host, data := range configs {
			w.site.PowerOn(w.hardware(host))
			up.Go(func() {
				c := w.insecure(host)
				defer c.Close()
				for w.ctx.Err() == nil {
					if _, err := c.ApplyConfiguration(w.ctx, &machine.ApplyConfigurationRequest{Data: data}); err == nil {
						return
					}
				}
			})
		}
		up.Wait()
		w.bootstrap(11)
		w.eventually("all run", func() bool {
			for _, m := range w.site.Machines() {
				if m.Stage != talos.StageRunning {
					return false
				}
			}
			return true
		})
		b.ReportMetric((processorTime() - cpu).Seconds(), "cpu-s/up")
		b.ReportMetric(float64(live()-memory)/(controlPlanes+workers)/(1<<20), "MiB/node")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/(controlPlanes+workers), "goroutines/node")
		cpu = processorTime()
		<-time.After(time.Second)
		b.ReportMetric((processorTime() - cpu).Seconds(), "cpu-s/s-at-rest")
		w.site.Close()
	}
}

// live is the memory in use after a garbage collection, including the goroutines' stacks.
func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail for the process itself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
