package kubelet

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/lab/kube/process"
	"github.com/slipway-platform/slipway/lab/workload"
)

// agentGone is the error of the network plugin while no agent listens.
const agentGone = "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox %q: plugin type=\"cilium-cni\" failed (add): " +
	"unable to connect to Cilium agent: failed to create cilium agent client after 30.000000 seconds timeout: Get \"http://localhost/v1/config\": " +
	"dial unix /var/run/cilium/cilium.sock: connect: no such file or directory\nIs the agent running?"

// advance starts the containers that can start, and fills the view. It returns when to check again.
func (w *podWorker) advance(ctx context.Context, pod *corev1.Pod, view *podView) time.Duration {
	s := w.k.runtime.sandbox(w.uid)
	if s == nil {
		var next time.Duration
		if s, next = w.open(ctx, pod); s == nil {
			return next
		}
	}
	view.sandbox = s
	if held, ends := w.k.held(pod); held {
		if ends {
			s.mu.Lock()
			s.of(pod.Spec.Containers[0].Name).backOff(pod, pod.Spec.Containers[0].Name)
			s.mu.Unlock()
		}
		return 0 // it is woken
	}
	for i := range pod.Spec.InitContainers {
		c := pod.Spec.InitContainers[i]
		sidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		next, state := w.keep(ctx, pod, s, c, !sidecar, sidecar)
		if state != succeeded && (state != running || !sidecar) {
			return next
		}
	}
	view.initialized = true
	var soonest time.Duration
	for i := range pod.Spec.Containers {
		completes := pod.Spec.RestartPolicy != corev1.RestartPolicyAlways
		next, _ := w.keep(ctx, pod, s, pod.Spec.Containers[i], completes, pod.Spec.RestartPolicy == corev1.RestartPolicyAlways)
		if next > 0 && (soonest == 0 || next < soonest) {
			soonest = next
		}
	}
	return soonest
}

// open creates the pod's sandbox, once the node has a network and the pod's volumes exist.
func (w *podWorker) open(ctx context.Context, pod *corev1.Pod) (*sandbox, time.Duration) {
	if !pod.Spec.HostNetwork {
		if up, _ := w.k.cni(); !up {
			w.warn(ctx, pod, "NetworkNotReady", "network is not ready: "+cniMissing)
			return nil, 0 // the worker is woken when that changes
		}
	}
	if missing := w.missingVolume(ctx, pod); missing != "" {
		w.warn(ctx, pod, "FailedMount", missing)
		return nil, 2 * retry
	}
	if ready, next := w.mountClaims(ctx, pod); !ready {
		return nil, next
	}
	if !pod.Spec.HostNetwork && !w.k.agentUp() {
		w.warn(ctx, pod, "FailedCreatePodSandBox", fmt.Sprintf(agentGone, pod.UID))
		return nil, 4 * retry
	}
	s, ok := w.k.runtime.create(pod, w.k.o.Addresses)
	if !ok {
		return nil, retry // the controller manager has not given the node a pod range yet
	}
	if err := w.addAddress(pod, s); err != nil {
		w.warn(ctx, pod, "FailedCreatePodSandBox", err.Error())
		w.k.runtime.remove(w.uid)
		return nil, 4 * retry
	}
	// After a reboot, the containers of the previous boot count as restarted.
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, old := range list {
			if old.ContainerID != "" && old.State.Terminated == nil {
				s.containers[old.Name] = &container{restarts: old.RestartCount + 1}
			}
		}
	}
	return s, 0
}

// addAddress adds the pod address of a real program to the lab's link, so that the program can listen on it, or makes the pod's network
// namespace.
func (w *podWorker) addAddress(pod *corev1.Pod, s *sandbox) error {
	addresses := w.k.c.o.Addresses
	if s.own && w.k.c.o.Namespaces != nil && w.k.c.o.Workloads.Isolated(pod) {
		namespace, err := w.k.c.o.Namespaces.NewNamespace(s.ips)
		if err != nil {
			return err
		}
		s.network = namespace.Path()
		s.release = func() {
			if err := namespace.Close(); err != nil {
				w.k.log.Warn("network namespace not removed", "pod", w.key, "err", err)
			}
		}
		return nil
	}
	if addresses == nil || !s.own || !w.k.c.o.Workloads.Listening(pod) {
		return nil
	}
	p := netip.PrefixFrom(s.ips[0], s.ips[0].BitLen()) // programs listen on the primary address only
	if err := addresses.Add(p); err != nil {
		return fmt.Errorf("address %s: %w", p, err)
	}
	s.release = func() {
		if err := addresses.Remove(p); err != nil {
			w.k.log.Warn("pod address not removed", "address", p, "err", err)
		}
	}
	return nil
}

// state is the state of a container.
type state int

const (
	waiting state = iota
	running
	succeeded
	failed
)

// keep starts a container that should run and does not. once: it runs to completion; always: it is restarted after any
// exit code.
func (w *podWorker) keep(ctx context.Context, pod *corev1.Pod, s *sandbox, spec corev1.Container, once, always bool) (time.Duration, state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.of(spec.Name)
	if c.instance != nil {
		select {
		case <-c.instance.Done():
			w.recordExit(pod, c)
		default:
			return 0, running
		}
	}
	if c.ended != nil {
		switch {
		case c.ended.ExitCode == 0 && !always:
			return 0, succeeded
		case !always && pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
			return 0, failed
		}
		if wait := time.Until(c.retryAt); wait > 0 {
			w.warn(ctx, pod, "BackOff", fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)", spec.Name, pod.Name, pod.Namespace,
				pod.UID))
			c.backOff(pod, spec.Name)
			return wait, waiting
		}
		c.restarts++
		c.last, c.ended = c.ended, nil
	}
	if next, here := w.pullImage(ctx, pod, spec, c); !here {
		return next, waiting
	}
	if err := w.start(pod, s, spec, c, once); err != nil {
		w.warn(ctx, pod, "Failed", "Error: "+err.Error())
		c.waiting = corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: err.Error()}
		return 4 * retry, waiting
	}
	return 0, running
}

// backOff records that the container waits for its next run.
func (c *container) backOff(pod *corev1.Pod, name string) {
	c.waiting = corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff",
		Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)", process.Backoff(int(c.restarts)+1), name, pod.Name,
			pod.Namespace, pod.UID)}
}

// recordExit records how a run ended and when the next one may begin.
func (w *podWorker) recordExit(pod *corev1.Pod, c *container) {
	code := int32(c.instance.ExitCode())
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	now := time.Now()
	c.ended = &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: c.instance.Message, StartedAt: metav1.NewTime(c.started.Truncate(time.Second)),
		FinishedAt: metav1.NewTime(now.Truncate(time.Second)), ContainerID: containerID(pod, c.restarts)}
	c.instance = nil
	n := int(c.restarts) + 1
	if now.Sub(c.started) > 5*time.Minute {
		n = 1 // it ran for a while: the back-off starts from the beginning
	}
	c.retryAt = now.Add(process.Backoff(n))
}

func (w *podWorker) start(pod *corev1.Pod, s *sandbox, spec corev1.Container, c *container, once bool) error {
	dir := w.k.c.podDir(w.key, w.uid)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	logPath := w.k.c.logPath(pod, spec.Name, c.restarts)
	log, err := createLog(logPath)
	if err != nil {
		return err
	}
	wc := workload.Container{Cluster: w.k.c.shared, Node: w.k.o.Name, KubernetesVersion: w.k.o.KubernetesVersion, NodeIP: w.k.o.Addresses[0],
		PodIP: s.ips[0], PodIPs: s.ips, Pod: pod, Spec: spec, RunsToCompletion: once, Network: s.network,
		Disk: w.k.o.Disk, Claims: w.claimPaths(pod), Dir: dir, Log: log, LogPath: logPath}
	instance, err := w.k.c.o.Workloads.Find(wc)(s.life, wc)
	if err != nil {
		_ = log.Close()
		return err
	}
	c.instance, c.started, c.waiting = instance, time.Now(), corev1.ContainerStateWaiting{}
	c.previous, c.log = c.log, logPath
	go func() {
		<-instance.Done()
		_ = log.Close()
	}()
	w.watch(instance)
	return nil
}

// watch wakes the pod's worker, of whichever kubelet runs then, when the instance changes.
func (w *podWorker) watch(i *workload.Instance) {
	c, node, uid := w.k.c, w.k.o.Name, w.uid
	go func() {
		for {
			changed := i.Changed()
			if k := c.kubelet(node); k != nil {
				k.wakePod(uid)
			}
			select {
			case <-i.Done():
				if k := c.kubelet(node); k != nil {
					k.wakePod(uid)
				}
				return
			case <-changed:
			}
		}
	}()
}

func (k *Kubelet) wakePod(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w := k.workers[uid]; w != nil {
		w.poke()
	}
}

// logPath is the file with the log of a container's run.
func (c *Cluster) logPath(pod *corev1.Pod, container string, restarts int32) string {
	return filepath.Join(c.o.Dir, "logs", strings.Join([]string{pod.Namespace, pod.Name, string(pod.UID)}, "_"), container, fmt.Sprintf("%d.log", restarts))
}

// podDir is the folder for the files of a pod's programs.
func (c *Cluster) podDir(key cache.ObjectName, uid types.UID) string {
	return filepath.Join(c.o.Dir, "pods", key.Namespace+"_"+key.Name+"_"+string(uid))
}

func removePodFiles(dir string) { _ = os.RemoveAll(dir) }

func containerID(pod *corev1.Pod, restarts int32) string {
	return fmt.Sprintf("containerd://%s-%d", pod.UID, restarts)
}
