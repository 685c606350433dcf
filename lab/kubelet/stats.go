package kubelet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// What everything uses, which is made up: simulated containers use nothing.
const (
	containerCPU    = 0.002     // cores
	containerMemory = 32 << 20  // of a container that requests none
	systemCPU       = 0.05      // cores: Talos, kubelet and container runtime
	systemMemory    = 400 << 20 // of the same
	usedDisk        = 3 << 30   // of EPHEMERAL
)

// measured is the use of something, at one moment.
type measured struct {
	cores   float64
	seconds float64 // CPU time since its start
	memory  uint64
}

func (m *measured) add(o measured) {
	m.cores += o.cores
	m.seconds += o.seconds
	m.memory += o.memory
}

func (m measured) cpu(now metav1.Time) *stats.CPUStats {
	return &stats.CPUStats{Time: now, UsageNanoCores: number(m.cores * 1e9), UsageCoreNanoSeconds: number(m.seconds * 1e9)}
}

func (m measured) mem(now metav1.Time) *stats.MemoryStats {
	none := uint64(0)
	return &stats.MemoryStats{Time: now, UsageBytes: &m.memory, WorkingSetBytes: &m.memory, RSSBytes: &m.memory, PageFaults: &none, MajorPageFaults: &none}
}

func number(f float64) *uint64 { n := uint64(f); return &n }

// summary is the use of the node, of its pods and of their containers.
func (k *Kubelet) summary(now time.Time, all bool) *stats.Summary {
	at := metav1.NewTime(now)
	up := now.Sub(k.runtime.since).Seconds()
	node := measured{cores: systemCPU, seconds: systemCPU * up, memory: systemMemory}
	out := &stats.Summary{Pods: []stats.PodStats{}}
	for _, pod := range k.running() {
		p, used := k.podStats(pod, at)
		node.add(used)
		if all {
			k.addPodDetails(&p, pod, at)
		}
		out.Pods = append(out.Pods, p)
	}
	out.Node = stats.NodeStats{NodeName: k.o.Name, StartTime: metav1.NewTime(k.runtime.since), CPU: node.cpu(at), Memory: node.mem(at)}
	left := uint64(k.o.memoryBytes()) - min(uint64(k.o.memoryBytes()), node.memory)
	out.Node.Memory.AvailableBytes = &left
	if all {
		disk := k.disk(at)
		none := uint64(0)
		out.Node.Fs, out.Node.Runtime = disk, &stats.RuntimeStats{ImageFs: disk, ContainerFs: disk}
		out.Node.Network = &stats.NetworkStats{Time: at, InterfaceStats: stats.InterfaceStats{Name: "eth0", RxBytes: &none, RxErrors: &none, TxBytes: &none, TxErrors: &none}}
	}
	return out
}

// running are the node's pods that have a container, by name.
func (k *Kubelet) running() []*corev1.Pod {
	list, _ := k.c.pods.List(labels.Everything()) // from the cache: never an error
	list = slices.DeleteFunc(slices.Clone(list), func(p *corev1.Pod) bool {
		return p.Spec.NodeName != k.o.Name || k.runtime.sandbox(p.UID) == nil
	})
	slices.SortFunc(list, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list
}

func (k *Kubelet) podStats(pod *corev1.Pod, at metav1.Time) (stats.PodStats, measured) {
	p := stats.PodStats{PodRef: stats.PodReference{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID)}, Containers: []stats.ContainerStats{}}
	if pod.Status.StartTime != nil {
		p.StartTime = *pod.Status.StartTime
	}
	sum := measured{}
	s := k.runtime.sandbox(pod.UID)
	for _, spec := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if s == nil {
			break
		}
		c, ok := s.get(spec.Name)
		if !ok || c.instance == nil {
			continue
		}
		used := measured{cores: containerCPU, seconds: containerCPU * max(at.Sub(c.started), time.Millisecond).Seconds(), memory: containerMemory}
		if request := spec.Resources.Requests.Memory().Value(); request > 0 {
			used.memory = uint64(request)
		}
		sum.add(used)
		p.Containers = append(p.Containers, stats.ContainerStats{Name: spec.Name, StartTime: metav1.NewTime(c.started), CPU: used.cpu(at), Memory: used.mem(at)})
	}
	p.CPU, p.Memory = sum.cpu(at), sum.mem(at)
	return p, sum
}

// addPodDetails adds what is not part of the CPU and memory statistics.
func (k *Kubelet) addPodDetails(p *stats.PodStats, pod *corev1.Pod, at metav1.Time) {
	none := uint64(0)
	if !pod.Spec.HostNetwork {
		p.Network = &stats.NetworkStats{Time: at, InterfaceStats: stats.InterfaceStats{Name: "eth0", RxBytes: &none, RxErrors: &none, TxBytes: &none, TxErrors: &none}}
	}
	for i := range p.Containers {
		empty := k.disk(at)
		empty.UsedBytes, empty.InodesUsed = &none, &none
		p.Containers[i].Rootfs, p.Containers[i].Logs = empty, empty
	}
	p.EphemeralStorage = k.disk(at)
	p.EphemeralStorage.UsedBytes, p.EphemeralStorage.InodesUsed = &none, &none
}

// disk is the file system of EPHEMERAL.
func (k *Kubelet) disk(at metav1.Time) *stats.FsStats {
	size := uint64(k.o.diskBytes())
	used := min(size, usedDisk)
	free, inodes := size-used, size/2048
	inodesUsed := inodes / 100
	inodesFree := inodes - inodesUsed
	return &stats.FsStats{Time: at, CapacityBytes: &size, UsedBytes: &used, AvailableBytes: &free, Inodes: &inodes, InodesFree: &inodesFree, InodesUsed: &inodesUsed}
}

// serveSummary answers /stats/summary.
func (k *Kubelet) serveSummary(w http.ResponseWriter, r *http.Request) {
	only, _ := strconv.ParseBool(r.URL.Query().Get("only_cpu_and_memory"))
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(w)
	out.SetIndent("", " ")
	_ = out.Encode(k.summary(time.Now(), !only))
}

// serveResourceMetrics answers /metrics/resource, which metrics-server reads.
func (k *Kubelet) serveResourceMetrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8; escaping=underscores")
	s := k.summary(time.Now(), false)
	families := []*family{
		{name: "container_cpu_usage_seconds_total", kind: "counter", help: "Cumulative cpu time consumed by the container in core-seconds"},
		{name: "container_memory_working_set_bytes", kind: "gauge", help: "Current working set of the container in bytes"},
		{name: "container_start_time_seconds", kind: "gauge", help: "Start time of the container since unix epoch in seconds"},
		{name: "node_cpu_usage_seconds_total", kind: "counter", help: "Cumulative cpu time consumed by the node in core-seconds"},
		{name: "node_memory_working_set_bytes", kind: "gauge", help: "Current working set of the node in bytes"},
		{name: "pod_cpu_usage_seconds_total", kind: "counter", help: "Cumulative cpu time consumed by the pod in core-seconds"},
		{name: "pod_memory_working_set_bytes", kind: "gauge", help: "Current working set of the pod in bytes"},
		{name: "resource_scrape_error", kind: "gauge", help: "1 if there was an error while getting container metrics, 0 otherwise"},
	}
	by := map[string]*family{}
	for _, f := range families {
		by[f.name] = f
	}
	seconds := func(c *stats.CPUStats) float64 { return float64(*c.UsageCoreNanoSeconds) / 1e9 }
	bytes := func(m *stats.MemoryStats) float64 { return float64(*m.WorkingSetBytes) }
	for _, p := range s.Pods {
		labels := fmt.Sprintf("namespace=%q,pod=%q", p.PodRef.Namespace, p.PodRef.Name)
		for _, c := range p.Containers {
			own := fmt.Sprintf("container=%q,%s", c.Name, labels)
			by["container_cpu_usage_seconds_total"].add(own, seconds(c.CPU), c.CPU.Time)
			by["container_memory_working_set_bytes"].add(own, bytes(c.Memory), c.Memory.Time)
			by["container_start_time_seconds"].add(own, float64(c.StartTime.UnixNano())/1e9, metav1.Time{})
		}
		by["pod_cpu_usage_seconds_total"].add(labels, seconds(p.CPU), p.CPU.Time)
		by["pod_memory_working_set_bytes"].add(labels, bytes(p.Memory), p.Memory.Time)
	}
	by["node_cpu_usage_seconds_total"].add("", seconds(s.Node.CPU), s.Node.CPU.Time)
	by["node_memory_working_set_bytes"].add("", bytes(s.Node.Memory), s.Node.Memory.Time)
	by["resource_scrape_error"].add("", 0, metav1.Time{})
	for _, f := range families {
		if len(f.lines) > 0 {
			_, _ = fmt.Fprintf(w, "# HELP %s [STABLE] %s\n# TYPE %s %s\n%s\n", f.name, f.help, f.name, f.kind, strings.Join(f.lines, "\n"))
		}
	}
}

// family is a metric with its values, in the text form of Prometheus.
type family struct {
	name, kind, help string
	lines            []string
}

func (f *family) add(labels string, value float64, at metav1.Time) {
	line := f.name
	if labels != "" {
		line += "{" + labels + "}"
	}
	line += " " + strconv.FormatFloat(value, 'g', -1, 64)
	if !at.IsZero() {
		line += " " + strconv.FormatInt(at.UnixMilli(), 10)
	}
	f.lines = append(f.lines, line)
}
