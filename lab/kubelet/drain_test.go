package kubelet

import (
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	clienttesting "k8s.io/client-go/testing"
)

func TestCordon_OfSomebodyElseStays(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
	applyCordoned(n, true)
	require.True(t, n.Spec.Unschedulable)
	applyCordoned(n, false)
	require.False(t, n.Spec.Unschedulable)
	require.Empty(t, n.Annotations)

	n.Spec.Unschedulable = true // by a person
	applyCordoned(n, true)
	require.NotContains(t, n.Annotations, constants.AnnotationCordonedKey)
	applyCordoned(n, false)
	require.True(t, n.Spec.Unschedulable)
}

// disk is a node's disk with some images.
type disk []string

func (d disk) Has(ref string) bool { return slices.Contains(d, ref) }
func (d disk) Add(string)          {}

func TestStaticPods_AreReplacedWhenTheyChangeAndStartWhenTheirProgramRuns(t *testing.T) {
	w := newWorld(t)
	w.client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if p := a.(clienttesting.CreateAction).GetObject().(*corev1.Pod); p.UID == "" { // what an API server sets
			p.UID, p.Spec.RestartPolicy = uuid.NewUUID(), corev1.RestartPolicyAlways
		}
		return false, nil, nil
	})
	var now atomic.Pointer[StaticPod]
	now.Store(&StaticPod{Name: "kube-apiserver", Image: "registry.k8s.io/kube-apiserver:v1.35.8", Hash: "a", Runs: true})
	k, err := w.Start(t.Context(), NodeOptions{Name: "infra-cp-1", Addresses: []netip.Addr{w.ip}, ControlPlane: true, KubernetesVersion: "v1.35.8",
		BootID: "1", Images: disk{"registry.k8s.io/kube-apiserver:v1.35.9"}, StaticPods: func() []StaticPod { return []StaticPod{*now.Load()} }})
	require.NoError(t, err)
	pod := func() *corev1.Pod {
		p, err := w.client.CoreV1().Pods("kube-system").Get(t.Context(), "kube-apiserver-infra-cp-1", metav1.GetOptions{})
		if err != nil {
			return &corev1.Pod{}
		}
		return p
	}
	w.eventually(t, func() bool { p := pod(); return podReady(&p.Status) })
	now.Store(&StaticPod{Name: "kube-apiserver", Image: "registry.k8s.io/kube-apiserver:v1.35.9", Hash: "b"})
	k.StaticPodsChanged()
	w.eventually(t, func() bool {
		p := pod()
		return len(p.Spec.Containers) == 1 && p.Spec.Containers[0].Image == "registry.k8s.io/kube-apiserver:v1.35.9" &&
			p.Labels["app.kubernetes.io/version"] == "v1.35.9" && !podReady(&p.Status)
	})
	now.Store(&StaticPod{Name: "kube-apiserver", Image: "registry.k8s.io/kube-apiserver:v1.35.9", Hash: "b", Ends: true})
	k.StaticPodsChanged()
	w.eventually(t, func() bool {
		p := pod()
		return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].State.Waiting != nil &&
			p.Status.ContainerStatuses[0].State.Waiting.Reason == "CrashLoopBackOff" && !podReady(&p.Status)
	})
	now.Store(&StaticPod{Name: "kube-apiserver", Image: "registry.k8s.io/kube-apiserver:v1.35.9", Hash: "b", Runs: true})
	k.StaticPodsChanged()
	w.eventually(t, func() bool { p := pod(); return podReady(&p.Status) })
}
