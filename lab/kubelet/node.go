package kubelet

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/lab/wait"
	"github.com/slipway-platform/slipway/lab/workload/cilium"
)

// heartbeat is how often an unchanged node status is written, as by a kubelet's nodeStatusReportFrequency.
const heartbeat = 5 * time.Minute

// retry is the pause after a write that the API server refused.
const retry = 250 * time.Millisecond

// register creates the Node, or takes over an existing one. It returns false if ctx has ended.
func (k *Kubelet) register(ctx context.Context) bool {
	want := k.object()
	for {
		err := k.tryRegister(ctx, want)
		if err == nil {
			return true
		}
		k.log.Debug("node not registered yet", "err", err)
		if !wait.Pause(ctx, retry) {
			return false
		}
	}
}

func (k *Kubelet) tryRegister(ctx context.Context, want *corev1.Node) error {
	nodes := k.own.CoreV1().Nodes()
	created, err := nodes.Create(ctx, want, metav1.CreateOptions{})
	if err == nil {
		k.log.Info("node registered")
		k.logLine("Successfully registered node", "node", want.Name)
		k.registered(created)
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	have, err := nodes.Get(ctx, want.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	k.registered(have)
	updated := have.DeepCopy()
	if updated.Labels == nil {
		updated.Labels = map[string]string{}
	}
	// Only the labels that every kubelet sets are written again. Taints are set at the first registration only.
	maps.Copy(updated.Labels, want.Labels)
	if updated.Annotations == nil {
		updated.Annotations = map[string]string{}
	}
	maps.Copy(updated.Annotations, want.Annotations)
	if !equality.Semantic.DeepEqual(have.ObjectMeta, updated.ObjectMeta) {
		if _, err := nodes.Update(ctx, updated, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// registered records what the API server has set on the node.
func (k *Kubelet) registered(n *corev1.Node) {
	k.runtime.setPodCIDRs(cilium.PodCIDRs(n, k.c.o.Faults))
	k.node = metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID}
}

// object is the Node that the kubelet registers. The API server adds the taint not-ready.
func (k *Kubelet) object() *corev1.Node {
	n := &corev1.Node{}
	n.Name = k.o.Name
	n.Labels = map[string]string{
		corev1.LabelHostname: k.o.Name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64",
	}
	n.Annotations = map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"} // the kubelet's default
	n.Spec.Taints = slices.Clone(k.o.RegisterTaints)
	k.fill(&n.Status, readiness{message: cniMissing})
	return n
}

// fill sets the kubelet's part of a node status.
func (k *Kubelet) fill(s *corev1.NodeStatus, r readiness) {
	s.Capacity, s.Allocatable = k.o.resources()
	s.Addresses = nil
	for _, a := range k.o.Addresses {
		s.Addresses = append(s.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()})
	}
	s.Addresses = append(s.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: k.o.Name})
	s.DaemonEndpoints.KubeletEndpoint.Port = port
	s.NodeInfo = corev1.NodeSystemInfo{
		OSImage: fmt.Sprintf("Talos (%s)", k.o.TalosVersion), KernelVersion: "6.18.18-talos", ContainerRuntimeVersion: "containerd://2.1.6",
		KubeletVersion: k.o.KubernetesVersion, OperatingSystem: "linux", Architecture: "amd64",
		MachineID: cmp.Or(k.o.MachineID, k.o.Name), SystemUUID: cmp.Or(k.o.MachineID, k.o.Name), BootID: cmp.Or(k.o.BootID, k.o.Name),
	}
	s.VolumesInUse = k.runtime.mounts.inUse()
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	setNodeCondition(s, now, corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory",
		"kubelet has sufficient memory available")
	setNodeCondition(s, now, corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure")
	setNodeCondition(s, now, corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available")
	if r.ready {
		setNodeCondition(s, now, corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")
	} else {
		setNodeCondition(s, now, corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady", r.message)
	}
}

// setNodeCondition replaces a condition. Its transition time changes only with its status.
func setNodeCondition(s *corev1.NodeStatus, now metav1.Time, t corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) {
	want := corev1.NodeCondition{Type: t, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now}
	for i, have := range s.Conditions {
		if have.Type == t {
			if have.Status == status {
				want.LastTransitionTime = have.LastTransitionTime
			}
			s.Conditions[i] = want
			return
		}
	}
	s.Conditions = append(s.Conditions, want)
}

// keepStatus writes the node's status when it changes and as a heartbeat, until ctx ends.
func (k *Kubelet) keepStatus(ctx context.Context) {
	var written time.Time
	var was readiness
	timer := time.NewTimer(0)
	defer timer.Stop()
	faults := k.c.o.Faults.Changed()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.pokes:
		case <-timer.C:
		case <-faults:
		}
		faults = k.c.o.Faults.Changed()
		if n, err := k.c.nodes.Get(k.o.Name); err == nil {
			k.runtime.setPodCIDRs(cilium.PodCIDRs(n, k.c.o.Faults))
		}
		r := k.readiness()
		if r.ready != was.ready {
			k.reportReadiness(ctx, r)
		}
		if r.ready != was.ready || r.served != was.served {
			k.log.Info("node network", "ready", r.ready, "agent", r.served)
			k.wakePods()
		}
		was = r
		next := time.Until(written.Add(heartbeat))
		if stale := next <= 0; stale || !k.statusIs(r) {
			if err := k.writeStatus(ctx, r); err != nil {
				k.log.Debug("node status not written", "err", err)
				next = retry
			} else {
				written = time.Now()
				next = heartbeat
			}
		}
		if r.in > 0 {
			next = min(next, r.in)
		}
		timer.Reset(max(next, time.Millisecond))
	}
}

// reportReadiness writes a change of the node's readiness to the kubelet's log and as an event.
func (k *Kubelet) reportReadiness(ctx context.Context, r readiness) {
	status, line := "NodeReady", "Node became ready"
	if !r.ready {
		status, line = "NodeNotReady", "Node became not ready"
	}
	k.logLine(line, "node", k.o.Name, "message", r.message)
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: k.o.Name, UID: k.node.UID}
	if err := k.record(ctx, about, corev1.EventTypeNormal, status, fmt.Sprintf("Node %s status is now: %s", k.o.Name, status)); err != nil {
		k.log.Debug("event not written", "err", err)
	}
}

// statusIs tells whether the Ready condition in the API server is the kubelet's, and the volumes in use are. The node lifecycle controller
// writes the condition, too.
func (k *Kubelet) statusIs(r readiness) bool {
	n, err := k.c.nodes.Get(k.o.Name)
	if err != nil {
		return true // deleted, or not in the cache yet: nothing to write
	}
	want := corev1.ConditionFalse
	if r.ready {
		want = corev1.ConditionTrue
	}
	if !slices.Equal(n.Status.VolumesInUse, k.runtime.mounts.inUse()) {
		return false
	}
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == want && (r.ready || c.Message == r.message)
	})
}

func (k *Kubelet) writeStatus(ctx context.Context, r readiness) error {
	nodes := k.own.CoreV1().Nodes()
	n, err := nodes.Get(ctx, k.o.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	k.fill(&n.Status, r)
	_, err = nodes.UpdateStatus(ctx, n, metav1.UpdateOptions{})
	return err
}
