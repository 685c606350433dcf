package kubelet

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/kube"
	"github.com/slipway-platform/slipway/lab/kube/kubetest"
	"github.com/slipway-platform/slipway/lab/kube/process"
	"github.com/slipway-platform/slipway/lab/latency"
	"github.com/slipway-platform/slipway/lab/network"
	"github.com/slipway-platform/slipway/lab/workload"
)

// real is a cluster with a real control plane.
type real struct {
	*Cluster
	plane *kube.ControlPlane
	rest  *rest.Config
	api   kubernetes.Interface
	nodes []*Kubelet
	table *process.Table

	faults *fault.Set
}

// startReal uses loopback addresses for pods, on which programs can listen without a network namespace.
func startReal(t *testing.T, workloads workload.Registry) *real {
	lo := kubetest.Loopback()
	pods := netip.PrefixFrom(netip.AddrFrom4([4]byte{127, 192 | lo.As4()[1]&63, 0, 0}), 16)
	r := startPlane(t, func(c *v1alpha1.Config) { c.ClusterConfig.ClusterNetwork.PodSubnet = []string{pods.String()} }, workloads)
	for _, name := range []string{"infra-cp-1", "infra-worker-1"} {
		lo = lo.Next()
		k, err := r.Start(t.Context(), NodeOptions{Name: name, Addresses: []netip.Addr{lo}, ControlPlane: name == "infra-cp-1",
			TalosVersion: "v1.12.7", KubernetesVersion: kubetest.Version, BootID: "1"})
		require.NoError(t, err)
		r.nodes = append(r.nodes, k)
	}
	return r
}

// startPlane starts a real control plane without nodes.
func startPlane(t *testing.T, change func(*v1alpha1.Config), workloads workload.Registry) *real {
	return startPlaneAt(t, planeOptions{change: change, workloads: withCRDs(t, workloads)})
}

// planeOptions are what differs between the tests' control planes. The zero value is that of a single one on loopback addresses.
type planeOptions struct {
	name      string        // default: infra
	loopback  netip.Addr    // default: the process's own
	advertise netip.Addr    // needed in namespaces without a default route
	endpoint  string        // of the API server, for pods in namespaces of their own; default: the loopback address
	link      *network.Link // which the addresses of pods belong to
	change    func(*v1alpha1.Config)
	workloads workload.Registry
}

func startPlaneAt(t *testing.T, p planeOptions) *real {
	binary := kubetest.Binary(t, "kube")
	if p.name == "" {
		p.name = "infra"
	}
	if !p.loopback.IsValid() {
		p.loopback = kubetest.Loopback()
	}
	dir := t.TempDir()
	r := &real{table: &process.Table{}, faults: &fault.Set{}}
	var err error
	r.plane, err = kube.Start(t.Context(), kube.Options{Name: p.name, Dir: dir, Loopback: p.loopback, Advertise: p.advertise,
		Config: kubetest.Config(t, p.change), Binary: binary, Faults: r.faults, Processes: r.table})
	require.NoError(t, err)
	t.Cleanup(r.plane.Stop)
	select {
	case <-r.plane.Ready():
	case <-time.After(2 * time.Minute):
		t.Fatal("the API server is not ready after 2 minutes")
	}
	r.rest = r.plane.RESTConfig()
	r.api, err = kubernetes.NewForConfig(r.rest)
	require.NoError(t, err)
	o := Options{Name: p.name, Dir: dir, Endpoint: cmp.Or(p.endpoint, r.plane.Server()), ControlPlane: r.plane, Latency: latency.Default(),
		Faults: r.faults, Processes: r.table, Workloads: p.workloads}
	if p.link != nil {
		o.Addresses, o.Namespaces, o.Loopback = p.link, p.link, p.loopback
	}
	r.Cluster, err = NewCluster(o)
	require.NoError(t, err)
	t.Cleanup(r.Cluster.Stop)
	return r
}

// withCRDs gives the operator the CRDs that it and the agents use, without their schemas.
func withCRDs(t testing.TB, w workload.Registry) workload.Registry {
	w.CRDs = t.TempDir()
	for kind, version := range map[string]string{
		"CiliumNode": "v2", "CiliumEndpoint": "v2", "CiliumIdentity": "v2", "CiliumLoadBalancerIPPool": "v2", "CiliumBGPAdvertisement": "v2",
		"CiliumBGPClusterConfig": "v2", "CiliumL2AnnouncementPolicy": "v2alpha1",
	} {
		singular, scope, subresources := strings.ToLower(kind), "Cluster", "{}"
		plural := singular + "s"
		switch kind {
		case "CiliumEndpoint":
			scope = "Namespaced"
		case "CiliumIdentity":
			plural = "ciliumidentities"
		case "CiliumLoadBalancerIPPool":
			subresources = "{status: {}}"
		case "CiliumL2AnnouncementPolicy":
			plural = "ciliuml2announcementpolicies"
		}
		require.NoError(t, os.WriteFile(filepath.Join(w.CRDs, plural+".yaml"), fmt.Appendf(nil, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.cilium.io}
spec:
  group: cilium.io
  scope: %s
  names: {kind: %s, plural: %[1]s, singular: %[4]s}
  versions: [{name: %[5]s, served: true, storage: true, subresources: %[6]s, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, plural, scope, kind, singular, version, subresources), 0o600))
	}
	return w
}

func (r *real) eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, 90*time.Second, 50*time.Millisecond, what)
}

func (r *real) deploy(t *testing.T) {
	labels := map[string]string{"k8s-app": "cilium"}
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "cilium", Namespace: "kube-system"}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			HostNetwork: true, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			InitContainers: []corev1.Container{{Name: "config", Image: "quay.io/cilium/cilium:v1.18.7"}},
			Containers:     []corev1.Container{{Name: "cilium-agent", Image: "quay.io/cilium/cilium:v1.18.7"}},
		}},
	}}
	_, err := r.api.CoreV1().ConfigMaps("kube-system").Create(t.Context(), ciliumConfig(), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = r.api.AppsV1().DaemonSets("kube-system").Create(t.Context(), ds, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = r.api.AppsV1().Deployments("kube-system").Create(t.Context(), operatorDeployment(), metav1.CreateOptions{})
	require.NoError(t, err)
}

func operatorDeployment() *appsv1.Deployment {
	labels, one := map[string]string{"name": "cilium-operator"}, int32(1)
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "cilium-operator", Namespace: "kube-system"}, Spec: appsv1.DeploymentSpec{
		Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			HostNetwork: true, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, PriorityClassName: "system-cluster-critical",
			Containers: []corev1.Container{{Name: "cilium-operator", Image: "quay.io/cilium/operator-generic:v1.18.7"}},
		}},
	}}
}

func (r *real) ready(t *testing.T, node string) bool {
	n, err := r.api.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	return err == nil && isReady(n)
}

func isReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (r *real) agent(t *testing.T, node string) *corev1.Pod {
	list, err := r.api.CoreV1().Pods("kube-system").List(t.Context(),
		metav1.ListOptions{LabelSelector: "k8s-app=cilium", FieldSelector: "spec.nodeName=" + node})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	return &list.Items[0]
}

// exec runs a command through the API server; ws selects the websocket protocol of newer clients.
func (r *real) exec(t *testing.T, pod string, ws bool, cmd ...string) (string, string, error) {
	return r.execIn(t, pod, "cilium-agent", ws, cmd...)
}

func (r *real) execIn(t *testing.T, pod, container string, ws bool, cmd ...string) (string, string, error) {
	req := r.api.CoreV1().RESTClient().Post().Resource("pods").Namespace("kube-system").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: cmd, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	var e remotecommand.Executor
	var err error
	if ws {
		e, err = remotecommand.NewWebSocketExecutor(r.rest, "GET", req.URL().String())
	} else {
		e, err = remotecommand.NewSPDYExecutor(r.rest, "POST", req.URL())
	}
	require.NoError(t, err)
	var stdout, stderr bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err = e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr})
	return stdout.String(), stderr.String(), err
}

func TestKubelets_CarryARealClusterFromNotReadyToReady(t *testing.T) {
	r := startReal(t, workload.Registry{})
	r.eventually(t, "both nodes are registered", func() bool {
		list, err := r.api.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 2
	})
	require.False(t, r.ready(t, "infra-cp-1"))
	r.deploy(t)
	r.eventually(t, "both nodes are Ready", func() bool { return r.ready(t, "infra-cp-1") && r.ready(t, "infra-worker-1") })
	r.eventually(t, "CoreDNS runs, which needs the network", func() bool {
		d, err := r.api.AppsV1().Deployments("kube-system").Get(t.Context(), "coredns", metav1.GetOptions{})
		return err == nil && d.Status.ReadyReplicas == 2
	})
	r.eventually(t, "static pods are shown", func() bool {
		p, err := r.api.CoreV1().Pods("kube-system").Get(t.Context(), "kube-apiserver-infra-cp-1", metav1.GetOptions{})
		return err == nil && podReady(&p.Status)
	})

	pod := r.agent(t, "infra-cp-1")
	log, err := r.api.CoreV1().Pods("kube-system").GetLogs(pod.Name, &corev1.PodLogOptions{Container: "cilium-agent"}).DoRaw(t.Context())
	require.NoError(t, err)
	require.Contains(t, string(log), "Initializing daemon completed")
	for _, ws := range []bool{false, true} {
		r.eventually(t, "a round of Cilium's probes has reached the other node", func() bool {
			out, _, err := r.exec(t, pod.Name, ws, "cilium-health", "status", "-o", "json")
			return err == nil && strings.Contains(out, `"name": "infra/infra-worker-1"`) && !strings.Contains(out, "refused")
		})
	}
	_, stderr, err := r.exec(t, pod.Name, false, "ls", "/")
	require.ErrorContains(t, err, "127")
	require.Contains(t, stderr, "not modelled")

	lease := func() (time.Time, error) { // Never can call it after the test and its context have ended
		l, err := r.api.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(context.WithoutCancel(t.Context()), "infra-worker-1",
			metav1.GetOptions{})
		if err != nil {
			return time.Time{}, err
		}
		return l.Spec.RenewTime.Time, nil
	}
	worker := r.agent(t, "infra-worker-1").Name
	r.nodes[1].Stop()
	stopped, err := lease()
	require.NoError(t, err)
	_, err = r.api.CoreV1().Pods("kube-system").GetLogs(worker, &corev1.PodLogOptions{Container: "cilium-agent"}).DoRaw(t.Context())
	require.Error(t, err, "a dead kubelet serves no logs")
	require.Never(t, func() bool {
		renewed, err := lease()
		return err == nil && renewed.After(stopped)
	}, leaseRenewal+time.Second, time.Second, "a dead kubelet renews no lease")
	require.Len(t, r.table.List(), 4)
}
