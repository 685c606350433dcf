package kubelet

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/lab/fault"
)

func (w *world) on(t *testing.T, kind fault.Kind, target, detail string) {
	require.NoError(t, w.faults.On(fault.Fault{Kind: kind, Target: target, Detail: detail}))
}

func waitingReason(p *corev1.Pod) corev1.ContainerStateWaiting {
	if len(p.Status.ContainerStatuses) == 0 || p.Status.ContainerStatuses[0].State.Waiting == nil {
		return corev1.ContainerStateWaiting{}
	}
	return *p.Status.ContainerStatuses[0].State.Waiting
}

func TestKubelet_AnImageThatCannotBePulledBacksOffAndIsPulledOnceItCan(t *testing.T) {
	w := newWorld(t)
	w.node(t)
	w.on(t, fault.ImagePull, "pause", "")
	p := plainPod("x")
	p.Spec.HostNetwork = true
	w.run(t, p)
	w.eventually(t, func() bool { return waitingReason(w.pod(t, "x")).Reason == "ErrImagePull" })
	w.eventually(t, func() bool { return waitingReason(w.pod(t, "x")).Reason == "ImagePullBackOff" })
	const words = `rpc error: code = NotFound desc = failed to pull and unpack image "registry.k8s.io/pause:3.10": failed to resolve image: registry.k8s.io/pause:3.10: not found`
	require.Equal(t, `Back-off pulling image "registry.k8s.io/pause:3.10": ErrImagePull: `+words, waitingReason(w.pod(t, "x")).Message)
	for reason, message := range map[string]string{"Pulling": `Pulling image "registry.k8s.io/pause:3.10"`, "BackOff": "Back-off pulling image", "Failed": words} {
		require.True(t, w.event(t, reason, message), reason)
	}
	require.True(t, w.event(t, "Failed", "Error: ErrImagePull"))
	require.Equal(t, corev1.PodPending, w.pod(t, "x").Status.Phase)
	w.faults.Clear()
	w.eventually(t, func() bool { s := w.pod(t, "x").Status; return podReady(&s) })
	require.Zero(t, w.pod(t, "x").Status.ContainerStatuses[0].RestartCount)

	w.on(t, fault.ImagePull, "pause", "")
	q := plainPod("y")
	q.Spec.HostNetwork = true
	w.run(t, q)
	w.eventually(t, func() bool { s := w.pod(t, "y").Status; return podReady(&s) }) // the node has the image by now
}

func TestKubelet_AFlappingNodeAlternatesAndIsReadyInTheEnd(t *testing.T) {
	w := newWorld(t)
	w.node(t)
	w.run(t, agentPod())
	w.eventually(t, func() bool { return w.nodeCondition(t).Status == corev1.ConditionTrue })
	w.on(t, fault.KubeletFlaps, "infra-worker-1", "30ms/30ms")
	for range 2 {
		w.eventually(t, func() bool { return w.nodeCondition(t).Status == corev1.ConditionFalse })
		c := w.nodeCondition(t)
		if c.Status == corev1.ConditionFalse {
			require.Equal(t, "KubeletNotReady", c.Reason)
			require.Contains(t, c.Message, "PLEG is not healthy")
		}
		w.eventually(t, func() bool { return w.nodeCondition(t).Status == corev1.ConditionTrue })
	}
	require.True(t, w.event(t, "NodeNotReady", "Node infra-worker-1 status is now: NodeNotReady"))
	w.faults.Clear()
	steady := 0 // a status that was being written when the fault ended may still arrive
	w.eventually(t, func() bool {
		steady++
		if w.nodeCondition(t).Status != corev1.ConditionTrue {
			steady = 0
		}
		return steady == 50
	})
}

// lines collects the lines of a kubelet's log.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, s)
}

func (l *lines) has(words ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.all, func(s string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(s, word) })
	})
}

// machine starts a kubelet that reacts to faults.
func (w *world) machine(t *testing.T, log func(string)) *Service {
	s, err := w.Run(t.Context(), NodeOptions{Name: "infra-worker-1", Addresses: []netip.Addr{w.ip}, BootID: "1", MaxPods: 220, Log: log})
	require.NoError(t, err)
	return s
}

// registered returns the Node with that name, nil if there is none.
func (w *world) registered(t *testing.T, name string) *corev1.Node {
	n, err := w.client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return n
}

func TestService_AMachineWithTheWrongNameRegistersUnderIt(t *testing.T) {
	w := newWorld(t)
	w.on(t, fault.NodeName, "infra-worker-1", "infra-worker-9")
	var log lines
	s := w.machine(t, log.add)
	defer s.Kill()
	w.eventually(t, func() bool { return w.registered(t, "infra-worker-9") != nil })
	require.Nil(t, w.registered(t, "infra-worker-1"))
	w.eventually(t, func() bool { return log.has("Successfully registered node", "infra-worker-9") })
	n := w.registered(t, "infra-worker-9")
	require.Equal(t, w.ip.String(), n.Status.Addresses[0].Address)
	require.Equal(t, int64(220), n.Status.Capacity.Pods().Value())

	w.faults.Clear()
	w.eventually(t, func() bool { return w.registered(t, "infra-worker-1") != nil })
	require.NotNil(t, w.registered(t, "infra-worker-9"), "nobody deletes it")
	w.on(t, fault.NodeName, "infra-worker-1", "")
	w.eventually(t, func() bool { return w.kubelet(w.nodeName("infra-worker-1")) != nil })
	require.Regexp(t, "^talos-[0-9a-f]{6}$", w.nodeName("infra-worker-1"))
}

func TestKubelet_UnderTheWrongRangeNewPodsOnlyGetItsAddresses(t *testing.T) {
	w := newWorld(t)
	w.node(t)
	w.run(t, agentPod())
	// A pod keeps its address, so the test must wait until the kubelet uses the new range.
	givesFrom := func(cidr string) func() bool {
		return func() bool {
			runtime := w.kubelet("infra-worker-1").runtime
			runtime.mu.Lock()
			defer runtime.mu.Unlock()
			return len(runtime.pods) == 1 && runtime.pods[0].prefix.String() == cidr
		}
	}
	w.on(t, fault.PodCIDR, "infra-worker-1", "10.99.1.0/24")
	w.eventually(t, givesFrom("10.99.1.0/24"))
	w.run(t, plainPod("x"))
	w.eventually(t, func() bool { return w.pod(t, "x").Status.PodIP == "10.99.1.10" })
	require.Equal(t, "10.244.3.0/24", w.registered(t, "infra-worker-1").Spec.PodCIDR)
	w.faults.Clear()
	w.eventually(t, givesFrom("10.244.3.0/24"))
	w.run(t, plainPod("y"))
	w.eventually(t, func() bool { return w.pod(t, "y").Status.PodIP == "10.244.3.10" })
}

func TestKubelet_PodsGetAnAddressOfEachFamilyInTheNodesOrder(t *testing.T) {
	w := newWorld(t)
	six := netip.MustParseAddr("fd00:10:25:11::21")
	_, err := w.Start(t.Context(), NodeOptions{Name: "infra-worker-1", Addresses: []netip.Addr{w.ip, six}, BootID: "1"})
	require.NoError(t, err)
	w.eventually(t, func() bool {
		n := w.registered(t, "infra-worker-1")
		if n == nil {
			return false
		}
		n.Spec.PodCIDR, n.Spec.PodCIDRs = "10.244.3.0/24", []string{"10.244.3.0/24", "fd00:10:244:3::/64"}
		_, err := w.client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
		return err == nil
	})
	w.run(t, agentPod())
	w.run(t, plainPod("x"))
	w.eventually(t, func() bool { return w.pod(t, "x").Status.PodIP != "" })
	require.Equal(t, []corev1.PodIP{{IP: "10.244.3.10"}, {IP: "fd00:10:244:3::a"}}, w.pod(t, "x").Status.PodIPs)
	require.Equal(t, []corev1.HostIP{{IP: w.ip.String()}, {IP: six.String()}}, w.pod(t, "x").Status.HostIPs)
	require.Equal(t, []corev1.PodIP{{IP: w.ip.String()}, {IP: six.String()}}, w.pod(t, "cilium-x").Status.PodIPs)
	require.Equal(t, []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: w.ip.String()},
		{Type: corev1.NodeInternalIP, Address: six.String()},
		{Type: corev1.NodeHostName, Address: "infra-worker-1"}}, w.registered(t, "infra-worker-1").Status.Addresses)
}

func TestCluster_KeepsTheOperatorOutUntilTheFaultIsOff(t *testing.T) {
	w := newWorld(t)
	w.node(t)
	operator := plainPod("cilium-operator-1")
	operator.Labels = operatorLabels
	operator.Spec.HostNetwork = true
	w.run(t, operator)
	w.eventually(t, func() bool { s := w.pod(t, "cilium-operator-1").Status; return podReady(&s) })
	w.on(t, fault.OperatorMissing, "infra", "")
	gone := func(name string) func() bool {
		return func() bool {
			_, err := w.client.CoreV1().Pods("kube-system").Get(t.Context(), name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}
	}
	w.eventually(t, gone("cilium-operator-1"))
	p := w.pod(t, blocker)
	term := p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
	require.Equal(t, map[string]string{"name": "cilium-operator"}, term.LabelSelector.MatchLabels)
	require.Equal(t, "system-node-critical", p.Spec.PriorityClassName)
	w.faults.Clear()
	w.eventually(t, gone(blocker))
}

func TestKubelet_AMissingKeyOfASecretHoldsThePod(t *testing.T) {
	w := newWorld(t)
	w.node(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "hubble-relay-client-certs"}, Data: map[string][]byte{"tls.crt": nil}}
	_, err := w.client.CoreV1().Secrets("kube-system").Create(t.Context(), secret, metav1.CreateOptions{})
	require.NoError(t, err)
	p := plainPod("relay")
	p.Spec.HostNetwork = true
	p.Spec.Volumes = []corev1.Volume{{Name: "tls", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
		Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: secret.Name},
			Items: []corev1.KeyToPath{{Key: "tls.crt"}, {Key: "ca.crt"}}}}}}}}}
	w.run(t, p)
	w.eventually(t, func() bool { return w.event(t, "FailedMount", "references non-existent secret key: ca.crt") })
}

func TestKubelet_WithoutItsConfigurationTheAgentDoesNotStart(t *testing.T) {
	w := newWorld(t)
	w.node(t)
	require.NoError(t, w.client.CoreV1().ConfigMaps("kube-system").Delete(t.Context(), "cilium-config", metav1.DeleteOptions{}))
	w.run(t, agentPod())
	w.eventually(t, func() bool {
		s := w.pod(t, "cilium-x").Status.InitContainerStatuses
		return len(s) > 0 && s[0].State.Waiting != nil && s[0].State.Waiting.Reason == "CrashLoopBackOff"
	})
	_, err := w.client.CoreV1().ConfigMaps("kube-system").Create(t.Context(), ciliumConfig(), metav1.CreateOptions{})
	require.NoError(t, err)
	w.eventually(t, func() bool { return w.nodeCondition(t).Status == corev1.ConditionTrue })
}
