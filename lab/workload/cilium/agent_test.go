package cilium

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	discovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/workload"
	"github.com/slipway-platform/slipway/lab/workload/workloadtest"
)

// dual is a dual-stack cluster whose chart has set these keys and values.
func dual(pairs ...string) simulation {
	c := cluster()
	nodes := []*corev1.Node{node("cp-1", "10.25.11.11", "10.244.0.0/24"), node("worker-1", "10.25.11.21", "10.244.1.0/24")}
	for i, n := range nodes {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP,
			Address: fmt.Sprintf("fd00:10:25:11::%d", i+1)})
		n.Spec.PodCIDRs = []string{n.Spec.PodCIDR, fmt.Sprintf("fd00:10:244:%x::/64", 0x10+i)}
	}
	c.Nodes = func() []*corev1.Node { return nodes }
	c.Client = kubefake.NewClientset(config(append(pairs, "cluster-name", "infra", "cluster-id", "1", "enable-ipv6", "true")...))
	c.Dynamic = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		ciliumNodes: "CiliumNodeList", ciliumPools: "CiliumLoadBalancerIPPoolList", gatewayClasses: "GatewayClassList",
		gatewaysResource: "GatewayList", httpRoutesResource: "HTTPRouteList"})
	c.PodAddresses = func(string) map[string]string { return map[string]string{"10.244.0.10": "kube-system/coredns-1"} }
	return c
}

// ask runs a command in the agent and decodes its JSON output.
func ask(t *testing.T, i *workload.Instance, out any, command string) {
	t.Helper()
	var stdout bytes.Buffer
	code, err := i.Exec(t.Context(), strings.Fields(command), nil, &stdout, io.Discard)
	require.NoError(t, err)
	require.Zero(t, code)
	require.NoError(t, json.Unmarshal(stdout.Bytes(), out))
}

func say(t *testing.T, i *workload.Instance, command string) string {
	t.Helper()
	var stdout bytes.Buffer
	_, err := i.Exec(t.Context(), strings.Fields(command), nil, &stdout, io.Discard)
	require.NoError(t, err)
	return stdout.String()
}

func TestAgent_ReportsItsStateAndTheAddressesInUse(t *testing.T) {
	c := dual()
	a := agentOn(t, c, "cp-1")
	agentOn(t, c, "worker-1")
	var s agentStatus
	ask(t, a, &s, "cilium-dbg status -o json")
	require.Equal(t, "Ok", s.Cilium.State)
	require.True(t, strings.HasPrefix(s.Cilium.Msg, "1.18.7 "), s.Cilium.Msg)
	require.Equal(t, "IPv4: 3/254 allocated from 10.244.0.0/24, "+
		"IPv6: 2/18446744073709551614 allocated from fd00:10:244:10::/64", s.IPAM.Status)

	require.Equal(t, "OK\n", say(t, a, "cilium status --brief"))
	require.Eventually(t, func() bool {
		return strings.Contains(say(t, a, "cilium-dbg status"), "2/2 reachable")
	}, time.Minute, time.Millisecond)
	require.Regexp(t, `IPAM: +IPv4: 3/254`, say(t, a, "cilium-dbg status"))

	ask(t, agentOn(t, cluster(), "cp-1"), &s, "cilium-dbg status -o json")
	require.Equal(t, "IPv4: 2/254 allocated from 10.244.0.0/24, ", s.IPAM.Status, "as the real one without IPv6")
}

func TestAgent_MakesItsCiliumNodeWithBothFamiliesAndFollowsTheRange(t *testing.T) {
	c := dual()
	agentOn(t, c, "cp-1")
	spec := func() map[string]any {
		n, err := c.Dynamic.Resource(ciliumNodes).Get(t.Context(), "cp-1", metav1.GetOptions{})
		require.NoError(t, err)
		return n.Object["spec"].(map[string]any)
	}
	require.Equal(t, map[string]any{"ipv4": "10.244.0.2", "ipv6": "fd00:10:244:10::2"}, spec()["health"])
	ranges := func() []any { r, _, _ := unstructured.NestedSlice(spec(), "ipam", "podCIDRs"); return r }
	require.Equal(t, []any{"10.244.0.0/24", "fd00:10:244:10::/64"}, ranges())
	require.Contains(t, spec()["addresses"], map[string]any{"ip": "fd00:10:25:11::1", "type": "InternalIP"})

	require.NoError(t, c.Faults.On(fault.Fault{Kind: fault.PodCIDR, Target: "cp-1", Detail: "10.99.0.0/16"}))
	require.Eventually(t, func() bool { return ranges()[0] == "10.99.11.0/24" && ranges()[1] == "fd00:10:244:10::/64" }, 5*time.Second,
		time.Millisecond)
	c.Faults.Clear()
	require.Eventually(t, func() bool { return ranges()[0] == "10.244.0.0/24" }, time.Minute, time.Millisecond)
}

func TestAgent_DoesNotReachThePeerOfItsFaultAndIsReachedByIt(t *testing.T) {
	c := dual()
	from, to := agentOn(t, c, "cp-1"), agentOn(t, c, "worker-1")
	require.NoError(t, c.Faults.On(fault.Fault{Kind: fault.CiliumHealth, Target: "cp-1/worker-1"}))
	var h healthStatus
	require.Eventually(t, func() bool {
		ask(t, from, &h, "cilium-health status -o json")
		all, done := probed(h)
		return len(h.Nodes) == 2 && all == done && h.Nodes[0].healthy() && !h.Nodes[1].healthy()
	}, time.Minute, time.Millisecond)
	peer := h.Nodes[1]
	require.Equal(t, "infra/worker-1", peer.Name)
	require.Equal(t, "Connection timed out", peer.Host.PrimaryAddress.ICMP.Status)
	require.Contains(t, peer.Host.SecondaryAddresses[0].HTTP.Status, `Get "http://[fd00:10:25:11::2]:4240/hello": context deadline exceeded`)
	require.Equal(t, "10.244.1.2", peer.HealthEndpoint.PrimaryAddress.IP)
	require.NotEmpty(t, peer.HealthEndpoint.SecondaryAddresses[0].ICMP.Status)
	require.Contains(t, say(t, from, "cilium-health status"), "1/2 reachable")
	var back healthStatus
	require.Eventually(t, func() bool {
		ask(t, to, &back, "cilium-health status -o json")
		return len(back.Nodes) == 2 && back.Nodes[0].healthy() && back.Nodes[1].healthy()
	}, time.Minute, time.Millisecond)
	c.Faults.Clear()
	require.Eventually(t, func() bool {
		var now healthStatus
		ask(t, from, &now, "cilium-health status -o json")
		return now.Nodes[1].healthy()
	}, time.Minute, time.Millisecond)
}

// probed returns the number of addresses of a report, and how many of them were probed.
func probed(h healthStatus) (all, done int) {
	for _, n := range h.Nodes {
		for _, p := range append(n.Host.all(), n.HealthEndpoint.all()...) {
			all++
			if p.reachable() || p.failed() {
				done++
			}
		}
	}
	return all, done
}

func TestAgent_ProbesInRoundsWhoseLengthDependsOnTheAddresses(t *testing.T) {
	for ratio, want := range map[string]string{"": "2m11.833474640s", "0": "21.972245773s"} {
		synctest.Test(t, func(t *testing.T) {
			c := dual("connectivity-probe-frequency-ratio", ratio)
			c.Cilium.Second = time.Second
			a := agentOn(t, c, "cp-1")
			agentOn(t, c, "worker-1")
			var h healthStatus
			ask(t, a, &h, "cilium-health status -o json")
			require.Empty(t, h.Nodes, "nothing was published yet")
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			ask(t, a, &h, "cilium-health status -o json")
			interval, err := time.ParseDuration(h.ProbeInterval)
			require.NoError(t, err)
			expected, err := time.ParseDuration(want)
			require.NoError(t, err)
			require.InDelta(t, expected.Seconds(), interval.Seconds(), 1e-6)
			a.Exit(0)
			c.Cilium.agents["worker-1"].Exit(0)
		})
	}
}

func TestAgent_DoesNotProbeBecauseItIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := dual("connectivity-probe-frequency-ratio", "0")
		c.Cilium.Second = time.Second
		a := agentOn(t, c, "cp-1")
		b := agentOn(t, c, "worker-1")
		time.Sleep(5 * time.Minute)
		require.NoError(t, c.Faults.On(fault.Fault{Kind: fault.CiliumHealth, Target: "cp-1/worker-1"}))
		var h healthStatus
		ask(t, a, &h, "cilium-health status --probe -o json")
		for _, n := range h.Nodes {
			require.True(t, n.healthy(), "%s as in the last round", n.Name)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		ask(t, a, &h, "cilium-health status -o json")
		require.False(t, h.Nodes[1].healthy())
		a.Exit(0)
		b.Exit(0)
	})
}

func TestAgent_PublishesARoundThatIsNotOverEveryMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := dual()
		c.Cilium.Second = time.Second
		a := agentOn(t, c, "cp-1") // knows itself only, so that its first round takes 96 s
		b := agentOn(t, c, "worker-1")
		time.Sleep(61 * time.Second)
		synctest.Wait()
		var h healthStatus
		ask(t, a, &h, "cilium-health status -o json")
		require.Equal(t, "1m36.566274746s", h.ProbeInterval)
		all, done := probed(h)
		require.Equal(t, 8, all)
		require.True(t, done > 0 && done < 4, "%d of its own 4 addresses were probed", done)
		time.Sleep(time.Minute + 132*time.Second)
		synctest.Wait()
		ask(t, a, &h, "cilium-health status -o json")
		_, done = probed(h)
		require.Equal(t, 8, done)
		a.Exit(0)
		b.Exit(0)
	})
}

func TestAgent_IsUnreachableUntilItIsReady(t *testing.T) {
	c := dual()
	c.PodStart = time.Hour
	spec := container(c, "cp-1", "cilium-agent", "quay.io/cilium/cilium:v1.18.7")
	i, err := c.Cilium.startAgent(t.Context(), spec)
	require.NoError(t, err)
	defer i.Exit(0)
	for command, want := range map[string]string{"cilium-health status -o json": "health.sock", "cilium-dbg status -o json": "cilium.sock", "cilium status --brief": "daemon unreachable"} {
		var stderr bytes.Buffer
		code, err := i.Exec(t.Context(), strings.Fields(command), nil, io.Discard, &stderr)
		require.NoError(t, err)
		require.Equal(t, 1, code)
		require.Contains(t, stderr.String(), want)
	}
}

func TestOperator_AcceptsItsGatewayClassOnlyIfTheCRDsExistedWhenItStarted(t *testing.T) {
	class := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
		"metadata": map[string]any{"name": "cilium"}, "spec": map[string]any{"controllerName": gatewayController}}}
	for _, there := range []bool{true, false} {
		c := dual("enable-gateway-api", "true")
		if there {
			c.Client.Discovery().(*discovery.FakeDiscovery).Resources = []*metav1.APIResourceList{
				{GroupVersion: "gateway.networking.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "gatewayclasses"}, {Name: "gateways"},
					{Name: "httproutes"}, {Name: "grpcroutes"}}},
				{GroupVersion: "gateway.networking.k8s.io/v1beta1", APIResources: []metav1.APIResource{{Name: "referencegrants"}}}}
		}
		_, err := c.Dynamic.Resource(gatewayClasses).Create(t.Context(), class.DeepCopy(), metav1.CreateOptions{})
		require.NoError(t, err)
		spec := container(c, "cp-1", "cilium-operator", "quay.io/cilium/operator-generic:v1.18.7")
		log := &workloadtest.Log{}
		spec.Log = log
		i, err := c.Cilium.startOperator(t.Context(), spec)
		require.NoError(t, err)
		defer i.Exit(0)
		require.Eventually(t, i.Ready, time.Minute, time.Millisecond)
		if !there {
			require.Eventually(t, func() bool { return strings.Contains(log.String(), "Required GatewayAPI resources are not found") },
				time.Minute, time.Millisecond)
			require.Contains(t, log.String(), `referencegrants.gateway.networking.k8s.io`)
			continue
		}
		require.Eventually(t, func() bool {
			have, err := c.Dynamic.Resource(gatewayClasses).Get(t.Context(), "cilium", metav1.GetOptions{})
			require.NoError(t, err)
			conditions, _, _ := unstructured.NestedSlice(have.Object, "status", "conditions")
			return len(conditions) == 1 && conditions[0].(map[string]any)["status"] == "True"
		}, time.Minute, time.Millisecond)
	}
}

func TestOperator_WantsTheGatewayAPIOfItsRelease(t *testing.T) {
	crd := func(served bool) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": "tlsroutes.gateway.networking.k8s.io"}, "spec": map[string]any{"versions": []any{
				map[string]any{"name": "v1", "served": true}, map[string]any{"name": "v1alpha2", "served": served}}}}}
	}
	for _, test := range []struct {
		version       string
		served        bool
		missing, runs bool
	}{{"1.19.0", false, false, false}, {"1.19.0", true, false, true}, {"1.20.2", false, true, true}} {
		c := dual()
		c.Client.Discovery().(*discovery.FakeDiscovery).Resources = []*metav1.APIResourceList{
			{GroupVersion: "gateway.networking.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "gatewayclasses"}, {Name: "gateways"},
				{Name: "httproutes"}, {Name: "grpcroutes"}, {Name: "tlsroutes"}, {Name: "referencegrants"}}},
			{GroupVersion: "gateway.networking.k8s.io/v1beta1", APIResources: []metav1.APIResource{{Name: "referencegrants"}}}}
		_, err := c.Dynamic.Resource(crdResource).Create(t.Context(), crd(test.served), metav1.CreateOptions{})
		require.NoError(t, err)
		o := &operator{Container: container(c, "cp-1", "cilium-operator", "quay.io/cilium/operator-generic:v"+test.version)}
		missing, err := o.missingGatewayKinds()
		require.NoError(t, err)
		require.Equal(t, test.missing, len(missing) == 1, "%s: %v", test.version, missing)
		require.Equal(t, test.runs, o.checkRoutes(t.Context()) == nil, test.version)
	}
}

// The operator goes by the agents' pods: one that waits for its image taints its node, too.
func TestOperator_TaintsTheNodeOfAnAgentThatIsNotReadyAndRemovesTheTaint(t *testing.T) {
	c := dual()
	nodes := c.Nodes()
	for _, n := range nodes {
		_, err := c.Client.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	c.Nodes = func() []*corev1.Node {
		list, _ := c.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		var out []*corev1.Node
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
		return out
	}
	operator := container(c, "cp-1", "cilium-operator", "quay.io/cilium/operator-generic:v1.18.7")
	i, err := c.Cilium.startOperator(t.Context(), operator)
	require.NoError(t, err)
	defer i.Exit(0)
	pods := c.Client.CoreV1().Pods(operator.Pod.Namespace)
	now := metav1.Now() // until its containers have ended, an agent that is being deleted counts by its condition
	pod, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "cilium-x", Labels: map[string]string{"k8s-app": "cilium"}, DeletionTimestamp: &now},
		Spec:       corev1.PodSpec{NodeName: "cp-1"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	tainted := func() bool {
		n, err := c.Client.CoreV1().Nodes().Get(t.Context(), "cp-1", metav1.GetOptions{})
		require.NoError(t, err)
		return len(n.Spec.Taints) == 1 && n.Spec.Taints[0].Key == agentNotReadyTaint
	}
	becomes := func(ready corev1.ConditionStatus, wanted bool) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		pod, err = pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.Eventually(t, func() bool { return tainted() == wanted }, time.Minute, time.Millisecond)
	}
	require.Eventually(t, tainted, time.Minute, time.Millisecond)
	becomes(corev1.ConditionTrue, false)
	becomes(corev1.ConditionFalse, true)
	becomes(corev1.ConditionTrue, false)
	other, err := c.Client.CoreV1().Nodes().Get(t.Context(), "worker-1", metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, other.Spec.Taints, "no agent is scheduled there")
}
