package kubelet

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/slipway-platform/slipway/lab/workload"
)

// web creates a Deployment with two pods on the worker, of which a PodDisruptionBudget keeps one.
func (r *real) web(t *testing.T) {
	labels, two, second := map[string]string{"app": "web"}, int32(2), int64(1)
	_, err := r.api.AppsV1().Deployments("kube-system").Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{Replicas: &two, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				HostNetwork: true, NodeSelector: map[string]string{corev1.LabelHostname: "infra-worker-1"}, TerminationGracePeriodSeconds: &second,
				Tolerations: []corev1.Toleration{{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists}},
				Containers:  []corev1.Container{{Name: "web", Image: "registry.k8s.io/pause:3.10"}},
			}}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	one := intstr.FromInt32(1)
	_, err = r.api.PolicyV1().PodDisruptionBudgets("kube-system").Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// webPods counts the pods of the Deployment by phase and reason.
func (r *real) webPods(t *testing.T) map[string]int {
	list, err := r.api.CoreV1().Pods("kube-system").List(context.WithoutCancel(t.Context()), metav1.ListOptions{LabelSelector: "app=web"})
	require.NoError(t, err)
	out := map[string]int{}
	for _, p := range list.Items {
		out[strings.TrimSpace(string(p.Status.Phase)+" "+p.Status.Reason)]++
	}
	return out
}

func TestDrain_KeepsBudgetsAndShutdownFailsWhatIsLeft(t *testing.T) {
	r := startReal(t, workload.Registry{})
	r.eventually(t, "the worker is registered", func() bool {
		_, err := r.api.CoreV1().Nodes().Get(t.Context(), "infra-worker-1", metav1.GetOptions{})
		return err == nil
	})
	r.web(t)
	r.eventually(t, "both pods run, and the budget counts them", func() bool {
		b, err := r.api.PolicyV1().PodDisruptionBudgets("kube-system").Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && b.Status.DisruptionsAllowed == 1 && r.webPods(t)["Running"] == 2
	})
	worker := r.nodes[1]
	require.NoError(t, worker.Cordon(t.Context()))
	node := func() *corev1.Node {
		n, err := r.api.CoreV1().Nodes().Get(t.Context(), "infra-worker-1", metav1.GetOptions{})
		require.NoError(t, err)
		return n
	}
	require.Equal(t, "true", node().Annotations[constants.AnnotationCordonedKey])

	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	var said []string
	require.NoError(t, worker.Drain(ctx, func(line string) { said = append(said, line) }))
	require.Error(t, ctx.Err(), "the budget keeps one pod for the whole time")
	require.Equal(t, map[string]int{"Running": 1, "Pending": 1}, r.webPods(t), "%v", said)
	require.Contains(t, strings.Join(said, "\n"), "WARNING: failed to evict pod")

	worker.Shutdown(t.Context())
	r.eventually(t, "the pod that was left has failed, and is replaced", func() bool {
		pods := r.webPods(t)
		return pods["Failed Terminated"] == 1 && pods["Pending"] == 2
	})
	require.False(t, isReady(node()))

	o := worker.o
	o.BootID = "2"
	_, err := r.Start(t.Context(), o)
	require.NoError(t, err)
	r.eventually(t, "Talos removes its own cordon, and the pods run", func() bool {
		n := node()
		return !n.Spec.Unschedulable && n.Annotations[constants.AnnotationCordonedKey] == "" && r.webPods(t)["Running"] == 2
	})
}

func TestNode_ThatIsDeletedStaysSoUntilTheKubeletStartsAgain(t *testing.T) {
	r := startReal(t, workload.Registry{})
	there := func() bool {
		_, err := r.api.CoreV1().Nodes().Get(context.WithoutCancel(t.Context()), "infra-worker-1", metav1.GetOptions{})
		return err == nil
	}
	r.eventually(t, "it is registered", there)
	require.NoError(t, r.api.CoreV1().Nodes().Delete(t.Context(), "infra-worker-1", metav1.DeleteOptions{}))
	require.Never(t, there, 3*time.Second, 200*time.Millisecond)
	r.nodes[1].Stop()
	_, err := r.Start(t.Context(), r.nodes[1].o)
	require.NoError(t, err)
	r.eventually(t, "it registers again", there)
}
