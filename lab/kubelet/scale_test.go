package kubelet

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/lab/workload"
)

// scaleEnv is the variable with the numbers of nodes, e.g. "5,20,100". Without it the measurement is skipped.
const scaleEnv = "SLIPWAY_LAB_SCALE"

// TestScale_MeasuresClustersOfManyNodes prints what a cluster costs: the time until all nodes are Ready, then, at rest,
// memory, CPU time and requests per second. Each size takes a minute, so it runs only on request.
func TestScale_MeasuresClustersOfManyNodes(t *testing.T) {
	sizes := os.Getenv(scaleEnv)
	if sizes == "" {
		t.Skipf("takes minutes; set %s=5,20,100", scaleEnv)
	}
	for _, size := range strings.Split(sizes, ",") {
		n, err := strconv.Atoi(size)
		require.NoError(t, err)
		t.Run(size, func(t *testing.T) { measure(t, n) })
	}
}

func measure(t *testing.T, n int) {
	const rest = 30 * time.Second
	r := startPlane(t, func(c *v1alpha1.Config) { c.ClusterConfig.ClusterNetwork.PodSubnet = []string{"10.244.0.0/16"} }, workload.Registry{})
	started, before := time.Now(), usage(t, r)
	r.deploy(t)
	for i := range n {
		_, err := r.Start(t.Context(), NodeOptions{Name: fmt.Sprintf("node-%03d", i),
			Addresses: []netip.Addr{netip.AddrFrom4([4]byte{127, 250, byte(i >> 7), byte(1 + i&127)})}, BootID: "1"})
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		list, err := r.api.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		ready := 0
		for i := range list.Items {
			if isReady(&list.Items[i]) {
				ready++
			}
		}
		return err == nil && ready == n
	}, 10*time.Minute, 250*time.Millisecond)
	up, joined := time.Since(started), usage(t, r)
	timer := time.NewTimer(rest)
	<-timer.C
	after := usage(t, r)
	runtime.GC()
	seconds := rest.Seconds()
	t.Logf("%d nodes: all Ready after %.1f s; until then %.0f requests (%.0f a node), CPU %.1f s lab + %.1f s control plane", n, up.Seconds(),
		joined.requests-before.requests, (joined.requests-before.requests)/float64(n), joined.lab-before.lab, joined.plane-before.plane)
	t.Logf("%d nodes at rest: %.1f requests/s, CPU %.1f%% lab + %.1f%% control plane, resident %d MiB lab, %s, %d goroutines", n,
		(after.requests-joined.requests)/seconds,
		100*(after.lab-joined.lab)/seconds, 100*(after.plane-joined.plane)/seconds, resident(t, os.Getpid()), after.memory,
		runtime.NumGoroutine())
}

// cost is what has been used since the start.
type cost struct {
	requests   float64 // answered by the API server
	lab, plane float64 // CPU time, seconds
	memory     string
}

func usage(t *testing.T, r *real) cost {
	raw, err := r.api.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(context.WithoutCancel(t.Context()))
	require.NoError(t, err)
	c := cost{lab: processor(t, os.Getpid())}
	for s := bufio.NewScanner(bytes.NewReader(raw)); s.Scan(); {
		if line := s.Text(); strings.HasPrefix(line, "apiserver_request_total{") {
			v, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			require.NoError(t, err)
			c.requests += v
		}
	}
	var memory []string
	for _, p := range r.table.List() {
		c.plane += processor(t, p.PID)
		memory = append(memory, fmt.Sprintf("%s %d MiB", p.Name, resident(t, p.PID)))
	}
	c.memory = strings.Join(memory, ", ")
	return c
}

// processor is the CPU time of a process in seconds.
func processor(t *testing.T, pid int) float64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	user, err1 := strconv.ParseFloat(fields[11], 64)
	system, err2 := strconv.ParseFloat(fields[12], 64)
	require.NoError(t, err1)
	require.NoError(t, err2)
	const ticks = 100 // per second, on every Linux
	return (user + system) / ticks
}

func resident(t *testing.T, pid int) int64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(raw)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "RssAnon: %d kB", &kib); n == 1 {
			return kib >> 10
		}
	}
	return 0
}
