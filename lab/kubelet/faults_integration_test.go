package kubelet

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/kube/kubetest"
	"github.com/slipway-platform/slipway/lab/workload"
)

func TestKubelets_TheSchedulerReportsAMissingOperatorAndPodsHaveBothFamilies(t *testing.T) {
	r := startPlane(t, func(c *v1alpha1.Config) {
		c.ClusterConfig.ClusterNetwork.PodSubnet = []string{"10.244.0.0/16", "fd00:10:244::/56"}
		c.ClusterConfig.ClusterNetwork.ServiceSubnet = []string{"10.245.0.0/16", "fd00:10:245::/112"}
	}, workload.Registry{})
	require.NoError(t, r.faults.On(fault.Fault{Kind: fault.OperatorMissing, Target: "infra"}))
	r.deploy(t)
	ip := kubetest.Loopback()
	for i, name := range []string{"infra-cp-1", "infra-worker-1"} {
		ip = ip.Next()
		s, err := r.Run(t.Context(), NodeOptions{Name: name, Addresses: []netip.Addr{ip,
			netip.MustParseAddr("fd00:10:25:11::1" + string(rune('1'+i)))}, BootID: "1",
			TalosVersion: "v1.12.7", KubernetesVersion: kubetest.Version})
		require.NoError(t, err)
		t.Cleanup(s.Kill)
	}
	ranges := func(name string) []string {
		n, err := r.api.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return nil
		}
		return n.Spec.PodCIDRs
	}
	r.eventually(t, "the node has a range of each family", func() bool { return len(ranges("infra-cp-1")) == 2 })
	require.True(t, strings.HasPrefix(ranges("infra-cp-1")[0], "10.244."))
	require.True(t, strings.HasPrefix(ranges("infra-cp-1")[1], "fd00:10:244:"))

	operator := func() *corev1.Pod {
		list, err := r.api.CoreV1().Pods("kube-system").List(t.Context(), metav1.ListOptions{LabelSelector: "name=cilium-operator"})
		if err != nil || len(list.Items) != 1 {
			return &corev1.Pod{}
		}
		return &list.Items[0]
	}
	r.eventually(t, "the scheduler says why the operator waits", func() bool {
		return slices.ContainsFunc(operator().Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Reason == "Unschedulable" &&
				strings.Contains(c.Message, "didn't satisfy existing pods anti-affinity rules")
		})
	})
	require.False(t, r.ready(t, "infra-cp-1"), "no agent is ready without the operator's CRDs")

	r.faults.Clear()
	r.eventually(t, "the operator comes back", func() bool { s := operator().Status; return podReady(&s) })
	r.eventually(t, "both nodes are Ready", func() bool { return r.ready(t, "infra-cp-1") && r.ready(t, "infra-worker-1") })
	r.eventually(t, "a pod has both families", func() bool {
		list, err := r.api.CoreV1().Pods("kube-system").List(t.Context(), metav1.ListOptions{LabelSelector: "k8s-app=kube-dns"})
		return err == nil && len(list.Items) > 0 && len(list.Items[0].Status.PodIPs) == 2
	})
}
