package kubelet

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/lab/fault"
)

func (w *world) nodeCondition(t *testing.T) corev1.NodeCondition {
	n, err := w.client.CoreV1().Nodes().Get(t.Context(), "infra-worker-1", metav1.GetOptions{})
	require.NoError(t, err)
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{}
}

// event tells whether there is an event with that reason whose message contains the text.
func (w *world) event(t *testing.T, reason, words string) bool {
	events, err := w.client.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == reason && strings.Contains(e.Message, words) })
}

func TestKubelet_TheNodeIsNotReadyBeforeItsFirstCiliumAgent(t *testing.T) {
	w := newWorld(t)
	w.node(t)
	w.run(t, plainPod("coredns"))
	require.Equal(t, corev1.ConditionFalse, w.nodeCondition(t).Status)
	require.Contains(t, w.nodeCondition(t).Message, "cni plugin not initialized")
	w.eventually(t, func() bool {
		p := w.pod(t, "coredns")
		return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Waiting != nil
	})
	w.run(t, agentPod())
	w.eventually(t, func() bool { return w.nodeCondition(t).Status == corev1.ConditionTrue })
	w.eventually(t, func() bool { s := w.pod(t, "coredns").Status; return podReady(&s) })
	p := w.pod(t, "coredns")
	require.Equal(t, "10.244.3.10", p.Status.PodIP)
	require.Equal(t, w.ip.String(), w.pod(t, "cilium-x").Status.PodIP)
}

// The agent writes the configuration of the network plugin first, and then waits for what it needs.
func TestKubelet_ANodeIsReadyBeforeItsCiliumAgentIs(t *testing.T) {
	w := newWorld(t)
	k := w.start(t, "v1.14.1", "1") // without a range of pods, for which agents wait
	w.run(t, agentPod())
	w.run(t, plainPod("coredns"))
	w.eventually(t, func() bool { return w.nodeCondition(t).Status == corev1.ConditionTrue })
	require.False(t, k.agentUp())
	require.Empty(t, w.pod(t, "coredns").Status.PodIP)
	w.givePodRange(t)
	w.eventually(t, func() bool { s := w.pod(t, "coredns").Status; return podReady(&s) })
}

func TestKubelet_TheConfigurationOfItsNetworkPluginOutlivesABootUpToTalos113(t *testing.T) {
	for version, stays := range map[string]bool{"v1.13.9": true, "v1.14.1": false} {
		t.Run(version, func(t *testing.T) {
			w := newWorld(t)
			k := w.start(t, version, "1")
			w.run(t, agentPod())
			w.eventually(t, func() bool { return w.nodeCondition(t).Status == corev1.ConditionTrue })
			require.NoError(t, w.client.CoreV1().Pods("kube-system").Delete(t.Context(), "cilium-x", metav1.DeleteOptions{}))
			w.eventually(t, func() bool { return k.runtime.sandbox("uid-cilium-x") == nil })
			k.Stop()
			k = w.start(t, version, "2")
			up, _ := k.cni()
			require.Equal(t, stays, up, version)
		})
	}
}

func TestKubelet_ACrashingAgentBacksOffAndRecoversAtOnceWhenTheFaultIsOff(t *testing.T) {
	w := newWorld(t)
	w.node(t)
	w.run(t, agentPod())
	w.eventually(t, func() bool { s := w.pod(t, "cilium-x").Status; return podReady(&s) })
	require.NoError(t, w.faults.On(fault.Fault{Kind: fault.CiliumAgentCrash, Target: "infra-worker-1"}))
	w.eventually(t, func() bool {
		s := w.pod(t, "cilium-x").Status.ContainerStatuses[0]
		return s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff" && s.LastTerminationState.Terminated.ExitCode == 1
	})
	w.eventually(t, func() bool { return w.nodeCondition(t).Status == corev1.ConditionTrue }) // the network's configuration stays
	w.run(t, plainPod("late"))
	w.eventually(t, func() bool { return w.event(t, "FailedCreatePodSandBox", "unable to connect to Cilium agent") })
	require.True(t, w.event(t, "BackOff", "Back-off restarting failed container cilium-agent"))
	began := time.Now()
	w.faults.Clear()
	w.eventually(t, func() bool { s := w.pod(t, "cilium-x").Status; return podReady(&s) })
	require.Less(t, time.Since(began), time.Second)
	require.NotZero(t, w.pod(t, "cilium-x").Status.ContainerStatuses[0].RestartCount)
	w.eventually(t, func() bool { s := w.pod(t, "late").Status; return podReady(&s) })
}

func TestKubelet_AMissingSecretHoldsThePod(t *testing.T) {
	w := newWorld(t)
	w.node(t)
	p := plainPod("relay")
	p.Spec.HostNetwork = true
	p.Spec.Volumes = []corev1.Volume{{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "hubble-relay-client-certs"}}}}
	w.run(t, p)
	w.eventually(t, func() bool { return w.event(t, "FailedMount", `secret "hubble-relay-client-certs" not found`) })
	w.eventually(t, func() bool { return w.pod(t, "relay").Status.Phase == corev1.PodPending })
	_, err := w.client.CoreV1().Secrets("kube-system").Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "hubble-relay-client-certs"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.eventually(t, func() bool { s := w.pod(t, "relay").Status; return podReady(&s) })
}

func TestKubelet_AJobsPodSucceeds(t *testing.T) {
	w := newWorld(t)
	w.node(t)
	p := plainPod("job")
	p.Spec.HostNetwork, p.Spec.RestartPolicy = true, corev1.RestartPolicyOnFailure
	w.run(t, p)
	w.eventually(t, func() bool { return w.pod(t, "job").Status.Phase == corev1.PodSucceeded })
}

func TestKubelet_AJobsPodFailsIfItsCommandFails(t *testing.T) {
	w := newWorld(t)
	w.node(t)
	job := func(name string, policy corev1.RestartPolicy, command ...string) {
		p := plainPod(name)
		p.Spec.HostNetwork, p.Spec.RestartPolicy, p.Spec.Containers[0].Command = true, policy, command
		w.run(t, p)
	}
	job("never", corev1.RestartPolicyNever, "sh", "-c", "echo no; exit 3")
	w.eventually(t, func() bool { return w.pod(t, "never").Status.Phase == corev1.PodFailed })
	require.Equal(t, int32(3), w.pod(t, "never").Status.ContainerStatuses[0].State.Terminated.ExitCode)
	require.Equal(t, "Error", w.pod(t, "never").Status.ContainerStatuses[0].State.Terminated.Reason)

	// The kubelet sees the status that it has written a moment later.
	w.eventually(t, func() bool {
		status, log := w.get(t, caller{name: "admin", group: "system:masters"}, "/containerLogs/kube-system/never/main")
		return status == 200 && strings.Contains(log, "exits with 3") // the log of a pod that has ended stays
	})

	job("again", corev1.RestartPolicyOnFailure, "false")
	w.eventually(t, func() bool {
		s := w.pod(t, "again").Status
		return len(s.ContainerStatuses) > 0 && s.ContainerStatuses[0].RestartCount > 0
	})
	job("ends", corev1.RestartPolicyAlways, "true")
	w.eventually(t, func() bool {
		s := w.pod(t, "ends").Status
		return len(s.ContainerStatuses) > 0 && s.ContainerStatuses[0].State.Waiting != nil && s.ContainerStatuses[0].State.Waiting.Reason == "CrashLoopBackOff"
	})
	job("unknown", corev1.RestartPolicyNever, "migrate", "up")
	w.eventually(t, func() bool { return w.pod(t, "unknown").Status.Phase == corev1.PodSucceeded })
	require.Contains(t, w.pod(t, "unknown").Status.ContainerStatuses[0].State.Terminated.Message, "assumed")
}

func TestKubelet_StopFreezesTheNodeAndARestartAdoptsItsContainers(t *testing.T) {
	w := newWorld(t)
	k := w.node(t)
	w.run(t, agentPod())
	w.eventually(t, func() bool { s := w.pod(t, "cilium-x").Status; return podReady(&s) })
	lease, err := w.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), "infra-worker-1", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "infra-worker-1", *lease.Spec.HolderIdentity)
	started := w.pod(t, "cilium-x").Status.ContainerStatuses[0].State.Running.StartedAt

	k.Stop()
	require.True(t, w.cilium.Ready("infra-worker-1"), "containers outlive their kubelet")
	w.node(t)
	w.eventually(t, func() bool { return w.nodeCondition(t).Status == corev1.ConditionTrue })
	status := w.pod(t, "cilium-x").Status.ContainerStatuses[0]
	require.Equal(t, started, status.State.Running.StartedAt)
	require.Zero(t, status.RestartCount)

	w.kubelet("infra-worker-1").Kill()
	require.False(t, w.cilium.Ready("infra-worker-1"), "a power cut ends them")
	w.node(t)
	w.eventually(t, func() bool {
		s := w.pod(t, "cilium-x").Status
		return s.ContainerStatuses[0].RestartCount == 1 && podReady(&s)
	})
}

func TestKubelet_ADeletedPodEndsAndGivesItsAddressBack(t *testing.T) {
	w := newWorld(t)
	k := w.node(t)
	p := plainPod("a")
	p.Spec.HostNetwork = true
	w.run(t, p)
	w.eventually(t, func() bool { s := w.pod(t, "a").Status; return podReady(&s) })
	require.NoError(t, w.client.CoreV1().Pods("kube-system").Delete(t.Context(), "a", metav1.DeleteOptions{}))
	w.eventually(t, func() bool { return k.runtime.sandbox("uid-a") == nil })
}

func TestKubelet_RejectsAPodThatComesWhileTheNodeShutsDown(t *testing.T) {
	w := newWorld(t)
	k := w.node(t)
	w.run(t, plainPod("waits")) // for the network, which no agent makes
	w.eventually(t, func() bool { return w.event(t, "NetworkNotReady", "network is not ready") })
	k.shutting.Store(true)
	w.run(t, plainPod("late"))
	w.eventually(t, func() bool { return w.pod(t, "late").Status.Phase == corev1.PodFailed })
	rejected := w.pod(t, "late").Status
	require.Equal(t, "NodeShutdown", rejected.Reason)
	require.Equal(t, "Pod was rejected: Pod was rejected as the node is shutting down.", rejected.Message)
	w.eventually(t, func() bool { return w.event(t, "NodeShutdown", "Pod was rejected as the node is shutting down.") })
	require.NotEqual(t, corev1.PodFailed, w.pod(t, "waits").Status.Phase)

	k.Shutdown(t.Context())
	require.Equal(t, "Terminated", w.pod(t, "waits").Status.Reason, "its controller replaces it, although it has never run")
	require.Equal(t, rejected, w.pod(t, "late").Status)
}
