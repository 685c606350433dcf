package talos_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/go-pointer"
	clusterapi "github.com/siderolabs/talos/pkg/machinery/api/cluster"
	"github.com/siderolabs/talos/pkg/machinery/client"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/talos"
	"github.com/slipway-platform/slipway/lab/vm"
)

// fakeAPI answers the Kubernetes API on the virtual IP with what a test puts into it. Without change it is a healthy cluster.
type fakeAPI struct {
	mu          sync.Mutex
	nodes       []corev1.Node
	pods        []corev1.Pod
	deployments []appsv1.Deployment
	gone        bool
}

// kubernetesAPI starts the API of a cluster with these control planes and workers.
func (w *world) kubernetesAPI(controlPlanes, workers []byte) *fakeAPI {
	w.t.Helper()
	api := &fakeAPI{deployments: []appsv1.Deployment{{
		ObjectMeta: metav1.ObjectMeta{Name: "coredns", Labels: map[string]string{"k8s-app": "kube-dns"}},
		Spec:       appsv1.DeploymentSpec{Replicas: pointer.To(int32(1))},
	}}}
	api.pods = append(api.pods, pod("kube-dns", "coredns-1"))
	for _, host := range controlPlanes {
		api.nodes = append(api.nodes, w.kubernetesNode(host, map[string]string{constants.LabelNodeRoleControlPlane: ""}))
		for _, app := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
			api.pods = append(api.pods, pod(app, app+"-"+node(host)))
		}
	}
	for _, host := range workers {
		api.nodes = append(api.nodes, w.kubernetesNode(host, nil))
	}
	ca, err := x509.NewCertificateAuthorityFromCertificateAndKey(w.input.Options.SecretsBundle.Certs.K8s)
	require.NoError(w.t, err)
	pair, err := x509.NewKeyPair(ca, x509.CommonName("kube-apiserver"), x509.IPAddresses([]net.IP{w.vip().AsSlice()}),
		x509.NotAfter(time.Now().Add(time.Hour)))
	require.NoError(w.t, err)
	listener, err := net.Listen("tcp", net.JoinHostPort(w.vip().String(), "6443"))
	require.NoError(w.t, err)
	server := httptest.NewUnstartedServer(api)
	_ = server.Listener.Close()
	server.Listener, server.TLS = listener, &tls.Config{Certificates: []tls.Certificate{*pair.Certificate}}
	server.StartTLS()
	w.t.Cleanup(server.Close)
	return api
}

func (w *world) kubernetesNode(host byte, labels map[string]string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node(host), Labels: labels},
		Status: corev1.NodeStatus{
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: w.addr(host).String()}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func pod(app, name string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"k8s-app": app}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: app, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		},
	}
}

func (a *fakeAPI) change(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	var list any
	switch {
	case err != nil || a.gone:
		http.Error(w, "no", http.StatusServiceUnavailable)
		return
	case r.URL.Path == "/api/v1/nodes":
		list = &corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: a.nodes}
	case r.URL.Path == "/api/v1/namespaces/kube-system/pods":
		pods := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		for _, p := range a.pods {
			if selector.Matches(labels.Set(p.Labels)) {
				pods.Items = append(pods.Items, p)
			}
		}
		list = pods
	case r.URL.Path == "/apis/apps/v1/namespaces/kube-system/daemonsets":
		list = &appsv1.DaemonSetList{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSetList"}}
	case r.URL.Path == "/apis/apps/v1/namespaces/kube-system/deployments":
		list = &appsv1.DeploymentList{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeploymentList"}, Items: a.deployments}
	case r.URL.Path == "/api":
		list = &metav1.APIVersions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIVersions"}, Versions: []string{"v1"}}
	case r.URL.Path == "/apis":
		list = &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}}
	case r.URL.Path == "/api/v1":
		list = &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: "v1",
			APIResources: []metav1.APIResource{
				{Name: "configmaps", SingularName: "configmap", Kind: "ConfigMap", Namespaced: true, Verbs: metav1.Verbs{"get", "update"}},
			}}
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(&metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound, Message: r.URL.Path + " not found"})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}

// health runs the check on the server side until it ends, or until a message contains stop.
func (w *world) health(host byte, timeout time.Duration, stop string, roles ...role.Role) (messages []string, err error) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	stream, err := w.admin(host, roles...).ClusterHealthCheck(ctx, timeout, &clusterapi.ClusterInfo{})
	require.NoError(w.t, err)
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return messages, nil
		}
		if err != nil {
			return messages, err
		}
		messages = append(messages, m.GetMessage())
		if stop != "" && strings.Contains(m.GetMessage(), stop) {
			return messages, nil
		}
	}
}

// knows waits until discovery has told a node of so many members: the check asks those that are known when it starts.
func (w *world) knows(host byte, count int) {
	w.t.Helper()
	w.eventually("all are known", func() bool { return len(members(w, host)) == count })
}

// waitsFor requires that the check on the server side gets as far as a message, and no further.
func (w *world) waitsFor(host byte, message string, roles ...role.Role) {
	w.t.Helper()
	messages, err := w.health(host, 20*time.Second, message, roles...)
	require.NoError(w.t, err, "all messages: %q", messages)
	require.NotEmpty(w.t, messages)
	last := messages[len(messages)-1]
	require.Contains(w.t, last, message, "all messages: %q", messages)
	require.False(w.t, strings.HasSuffix(last, ": OK"), last)
}

func TestHealthCheck_ChecksWhatTalosChecksInItsOrder(t *testing.T) {
	w := newWorld(t)
	w.cluster(3, 1)
	w.kubernetesAPI([]byte{11, 12, 13}, []byte{21})
	w.knows(11, 4)
	messages, err := w.health(11, 20*time.Second, "")
	require.NoError(t, err, "all messages: %q", messages)
	require.True(t, strings.HasPrefix(messages[0], "discovered nodes: ["), messages[0])
	for _, address := range []netip.Addr{w.vip(), w.addr(12), w.addr(13), w.addr(21)} { // the first address of each member
		require.Contains(t, messages[0], address.String())
	}
	var done []string
	for _, m := range messages {
		for _, end := range []string{": OK", ": SKIP"} {
			if subject, is := strings.CutSuffix(strings.TrimPrefix(m, "waiting for "), end); is {
				done = append(done, subject)
			}
		}
	}
	require.Equal(t, []string{
		"etcd to be healthy", "etcd members to be consistent across nodes", "etcd members to be control plane nodes", "apid to be ready",
		"all nodes memory sizes", "all nodes disk sizes", "no diagnostics", "kubelet to be healthy", "all nodes to finish boot sequence",
		"all k8s nodes to report", "all control plane static pods to be running", "all control plane components to be ready",
		"all k8s nodes to report ready", "kube-proxy to report ready", "coredns to report ready", "all k8s nodes to report schedulable",
	}, done)
}

func TestHealthCheck_IsAnErrorAfterTheTimeThatTheClientWaits(t *testing.T) {
	w := newWorld(t)
	w.install(configmachine.TypeControlPlane, 11) // not bootstrapped
	w.eventually("its API is up", func() bool { return w.service(11, "apid").Healthy })
	messages, err := w.health(11, 200*time.Millisecond, "")
	require.Equal(t, codes.DeadlineExceeded, status.Code(err), "%v", err)
	require.Contains(t, messages[len(messages)-1], "waiting for etcd to be healthy: ")
	require.NotContains(t, messages[len(messages)-1], "OK")

	// talosctl names the node. apid then sends the error as a message, which must be readable.
	ctx := client.WithNodes(w.ctx, w.addr(11).String())
	stream, err := w.admin(11).ClusterHealthCheck(ctx, 200*time.Millisecond, &clusterapi.ClusterInfo{})
	require.NoError(t, err)
	var last *clusterapi.HealthCheckProgress
	for m, err := stream.Recv(); err == nil; m, err = stream.Recv() {
		last = m
	}
	require.Contains(t, last.GetMetadata().GetError(), "context deadline exceeded")
}

func TestHealthCheck_WaitsForANodeThatIsOff(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 0)
	worker, _ := w.install(configmachine.TypeWorker, 21)
	w.stage(21, talos.StageRunning)
	w.knows(11, 2)
	w.kubernetesAPI([]byte{11}, []byte{21})
	worker.PowerOff()
	w.waitsFor(11, "no route to host")
}

func TestHealthCheck_WaitsForEtcdOfEveryControlPlane(t *testing.T) {
	w := newWorld(t)
	w.cluster(3, 0)
	w.knows(11, 3)
	w.kubernetesAPI([]byte{11, 12, 13}, nil)
	w.breaks(fault.EtcdMemberMissing, node(13), "")
	w.eventually("the member is gone", func() bool { return !w.service(13, "etcd").Healthy })
	w.waitsFor(11, `service "etcd" not in expected state "Running"`)
}

func TestHealthCheck_WaitsForTheKubeletOfAControlPlaneOnly(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 1)
	w.knows(11, 2)
	api := w.kubernetesAPI([]byte{11}, []byte{21})
	w.breaks(fault.KubeletDown, node(21), "")
	w.eventually("the kubelet is down", func() bool { return !w.service(21, "kubelet").Healthy })
	messages, err := w.health(11, 20*time.Second, "")
	require.NoError(t, err, "Talos does not ask for the kubelets of workers; all messages: %q", messages)
	api.change(func() { api.nodes[1].Status.Conditions[0].Status = corev1.ConditionUnknown })
	w.waitsFor(11, "waiting for all k8s nodes to report ready: some nodes are not ready: [node-21]")

	w.breaks(fault.KubeletDown, node(11), "")
	w.eventually("the kubelet is down", func() bool { return !w.service(11, "kubelet").Healthy })
	w.waitsFor(11, `service "kubelet" not in expected state "Running": current state [Waiting]`)
}

func TestHealthCheck_WaitsForANodeThatDoesNotFinishItsBoot(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 0)
	w.kubernetesAPI([]byte{11}, []byte{21})
	w.breaks(fault.KubeletDown, node(21), "")
	w.install(configmachine.TypeWorker, 21)
	w.eventually("its kubelet fails", func() bool { return w.service(21, "kubelet").State == "Waiting" })
	w.knows(11, 2)
	w.waitsFor(11, "waiting for all nodes to finish boot sequence: nodes are not running: booting: ["+w.addr(21).String()+"]")
}

func TestHealthCheck_WaitsForMachinesThatAreLargeEnough(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 0)
	w.kubernetesAPI([]byte{11}, []byte{21, 22})
	small := w.hardware(21)
	small.MemoryMiB = 512
	w.boots(small, w.config(configmachine.TypeWorker, 21))
	w.stage(21, talos.StageRunning)
	w.knows(11, 2)
	w.waitsFor(11, `node "`+w.addr(21).String()+`" does not meet memory requirements: expected at least 874 MiB, actual 512 MiB`)

	w = newWorld(t)
	w.cluster(1, 0)
	w.kubernetesAPI([]byte{11}, []byte{22})
	full := w.hardware(22)
	full.Disks = map[string]*vm.Disk{"scsi0": {Volume: "local-lvm:disk", Size: 5 << 30}}
	w.boots(full, w.config(configmachine.TypeWorker, 22))
	w.stage(22, talos.StageRunning)
	w.knows(11, 2)
	w.waitsFor(11, `for node "`+w.addr(22).String()+`" is too small`)
}

// The Kubernetes API is asked with the credentials that Talos has, at the cluster's endpoint.
func TestHealthCheck_WaitsForKubernetes(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 1)
	w.knows(11, 2)
	api := w.kubernetesAPI([]byte{11}, []byte{21})
	nodes, pods := slices.Clone(api.nodes), slices.Clone(api.pods)
	for _, c := range []struct {
		name, waits string
		change      func()
	}{
		{"the API is gone", "(get nodes)", func() { api.gone = true }},
		{"a node has not registered", `waiting for all k8s nodes to report: can't find expected node with IPs ["` + w.addr(21).String() + `"]`,
			func() { api.nodes = api.nodes[:1] }},
		{"a node is not known to Talos", `waiting for all k8s nodes to report: unexpected nodes with IPs ["` + w.addr(29).String() + `"]`,
			func() { api.nodes = append(api.nodes, w.kubernetesNode(29, nil)) }},
		{"a static pod is missing",
			"waiting for all control plane components to be ready: expected number of pods for kube-apiserver to be 1, got 0",
			func() { api.pods = append(api.pods[:1:1], api.pods[2:]...) }},
		{"CoreDNS is not ready", "waiting for coredns to report ready: no ready pods found", func() { api.pods[0].Status.Conditions = nil }},
		{"a node is cordoned", "waiting for all k8s nodes to report schedulable: some nodes are not schedulable: [node-21]",
			func() { api.nodes[1].Spec.Unschedulable = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			api.change(c.change)
			defer api.change(func() {
				api.gone, api.nodes, api.pods = false, slices.Clone(nodes), slices.Clone(pods)
			})
			w.waitsFor(11, c.waits)
		})
	}
	w.waitsFor(11, "waiting for all k8s nodes to report: rpc error: code = PermissionDenied desc = not authorized", role.Reader)
}

// A worker's apid forwards nothing, so the check cannot begin there.
func TestHealthCheck_OnAWorkerGetsNowhere(t *testing.T) {
	w := newWorld(t)
	w.cluster(1, 1)
	w.knows(11, 2)
	w.waitsFor(21, "no request forwarding")
}
