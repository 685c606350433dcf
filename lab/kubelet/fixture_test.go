package kubelet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	sx509 "github.com/siderolabs/crypto/x509"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/latency"
)

// controlPlane issues the kubelets' certificates from its own CA.
type controlPlane struct{ ca *sx509.CertificateAuthority }

func newControlPlane(t *testing.T) controlPlane {
	ca, err := sx509.NewSelfSignedCertificateAuthority(sx509.ECDSA(true), sx509.NotAfter(time.Now().Add(time.Hour)))
	require.NoError(t, err)
	return controlPlane{ca}
}

func (controlPlane) RESTConfig() *rest.Config { return &rest.Config{Host: "https://127.0.0.1:1"} }
func (p controlPlane) ClusterCA() []byte      { return p.ca.CrtPEM }
func (p controlPlane) NodeRESTConfig(string, []byte) (*rest.Config, error) {
	return p.RESTConfig(), nil
}
func (p controlPlane) KubeletTLS(node string) (*tls.Config, error) {
	pair, err := sx509.NewKeyPair(p.ca, sx509.CommonName(node), sx509.DNSNames([]string{node}), sx509.NotAfter(time.Now().Add(time.Hour)))
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{*pair.Certificate}, ClientAuth: tls.RequestClientCert}, nil
}

// client is the TLS configuration of a client with a certificate for name; empty means without certificate.
func (p controlPlane) client(t *testing.T, name, group string) *tls.Config {
	c := &tls.Config{InsecureSkipVerify: true} // a kubelet's certificate is signed by itself
	if name != "" {
		pair, err := sx509.NewKeyPair(p.ca, sx509.CommonName(name), sx509.Organization(group), sx509.NotAfter(time.Now().Add(time.Hour)),
			sx509.ExtKeyUsage([]x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}))
		require.NoError(t, err)
		c.Certificates = []tls.Certificate{*pair.Certificate}
	}
	return c
}

// world is a cluster of kubelets with an in-memory API server.
type world struct {
	*Cluster
	plane  controlPlane
	client *fake.Clientset
	faults *fault.Set
	ip     netip.Addr

	mu      sync.Mutex
	asked   int             // reviews of access
	watched map[string]bool // resources
	allowed map[string]bool // "user verb subresource"; members of system:masters may do everything
}

// review answers a review of access as the API server would.
func (w *world) review(a clienttesting.Action) (bool, runtime.Object, error) {
	r := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	on := r.Spec.ResourceAttributes
	r.Status.Allowed = slices.Contains(r.Spec.Groups, "system:masters") ||
		on.Resource == "nodes" && on.Name == "infra-worker-1" && w.allowed[r.Spec.User+" "+on.Verb+" "+on.Subresource]
	return true, r, nil
}

// tokenReview knows one token.
func (w *world) tokenReview(a clienttesting.Action) (bool, runtime.Object, error) {
	r := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
	if r.Status.Authenticated = r.Spec.Token == metricsToken; r.Status.Authenticated {
		r.Status.User = authenticationv1.UserInfo{Username: metricsUser, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	}
	return true, r, nil
}

// The account of metrics-server, and its token.
const (
	metricsUser  = "system:serviceaccount:kube-system:metrics-server"
	metricsToken = "metrics-server's token"
)

// quick returns latencies in which every duration is short.
func quick() latency.Latencies {
	l := latency.Default()
	l.ImagePull, l.PodStart = 2*time.Millisecond, 4*time.Millisecond
	return l
}

func newWorld(t *testing.T) *world {
	pid := os.Getpid()
	w := &world{plane: newControlPlane(t), client: fake.NewClientset(ciliumConfig()), faults: &fault.Set{}, watched: map[string]bool{},
		ip: netip.AddrFrom4([4]byte{127, 200, byte(pid >> 8), byte(pid)})}
	w.client.PrependReactor("update", "nodes", keepSpec(w.client.Tracker()))
	w.client.PrependReactor("update", "pods", keepPod(w.client.Tracker()))
	w.client.PrependReactor("create", "subjectaccessreviews", w.review)
	w.client.PrependReactor("create", "tokenreviews", w.tokenReview)
	w.client.PrependWatchReactor("*", w.watch)
	c, err := newCluster(Options{Name: "infra", Dir: t.TempDir(), Endpoint: "https://10.25.11.10:6443", ControlPlane: w.plane, Latency: quick(), Faults: w.faults,
		Log: slog.New(slog.DiscardHandler)}, w.client, nil)
	require.NoError(t, err)
	w.Cluster = c
	t.Cleanup(c.Stop)
	w.eventually(t, w.watches("pods", "nodes"))
	return w
}

// watches returns whether each of the resources is watched.
func (w *world) watches(resources ...string) func() bool {
	return func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return !slices.ContainsFunc(resources, func(resource string) bool { return !w.watched[resource] })
	}
}

// watch notes what is watched. An in-memory API server has no resource versions: what is created between a cache's list
// and its watch never reaches the cache.
func (w *world) watch(a clienttesting.Action) (bool, watch.Interface, error) {
	stream, err := w.client.Tracker().Watch(a.GetResource(), a.GetNamespace())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watched[a.GetResource().Resource] = err == nil
	return true, stream, err
}

// keepSpec makes a status update change only the status, as an API server does. Otherwise it would revert what the
// controller manager has written.
func keepSpec(tracker clienttesting.ObjectTracker) clienttesting.ReactionFunc {
	var mu sync.Mutex
	return func(a clienttesting.Action) (bool, runtime.Object, error) {
		update, ok := a.(clienttesting.UpdateAction)
		if !ok || a.GetSubresource() != "status" {
			return false, nil, nil
		}
		mu.Lock()
		defer mu.Unlock()
		sent := update.GetObject().(*corev1.Node)
		have, err := tracker.Get(a.GetResource(), "", sent.Name)
		if err != nil {
			return true, nil, err
		}
		n := have.(*corev1.Node).DeepCopy()
		n.Status = sent.Status
		return true, n, tracker.Update(a.GetResource(), n, "")
	}
}

// keepPod makes the update of a pod's status change only the status, and fail if the pod is another one by now, as an API server does.
func keepPod(tracker clienttesting.ObjectTracker) clienttesting.ReactionFunc {
	return func(a clienttesting.Action) (bool, runtime.Object, error) {
		update, ok := a.(clienttesting.UpdateAction)
		if !ok || a.GetSubresource() != "status" {
			return false, nil, nil
		}
		sent := update.GetObject().(*corev1.Pod)
		have, err := tracker.Get(a.GetResource(), sent.Namespace, sent.Name)
		if err != nil {
			return true, nil, err
		}
		p := have.(*corev1.Pod).DeepCopy()
		if p.UID != sent.UID {
			return true, nil, apierrors.NewConflict(corev1.Resource("pods"), sent.Name, errors.New("the UID differs"))
		}
		p.Status = sent.Status
		return true, p, tracker.Update(a.GetResource(), p, p.Namespace)
	}
}

// node starts a kubelet, whose node has a pod range.
func (w *world) node(t *testing.T) *Kubelet {
	k := w.start(t, "v1.12.7", "1")
	w.givePodRange(t)
	return k
}

func (w *world) start(t *testing.T, talos, boot string) *Kubelet {
	k, err := w.Start(t.Context(), NodeOptions{Name: "infra-worker-1", Addresses: []netip.Addr{w.ip}, TalosVersion: talos,
		KubernetesVersion: "v1.35.8", BootID: boot})
	require.NoError(t, err)
	w.eventually(t, func() bool {
		_, err := w.client.CoreV1().Nodes().Get(context.WithoutCancel(t.Context()), "infra-worker-1", metav1.GetOptions{})
		return err == nil
	})
	return k
}

// givePodRange sets the node's pod range, as the controller manager does.
func (w *world) givePodRange(t *testing.T) {
	w.eventually(t, func() bool {
		n, err := w.client.CoreV1().Nodes().Get(t.Context(), "infra-worker-1", metav1.GetOptions{})
		if err != nil {
			return false
		}
		n.Spec.PodCIDR = "10.244.3.0/24"
		_, err = w.client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
		return err == nil
	})
}

func (w *world) run(t *testing.T, pod *corev1.Pod) {
	pod.Namespace, pod.UID, pod.Spec.NodeName = "kube-system", types.UID("uid-"+pod.Name), "infra-worker-1"
	if pod.Spec.RestartPolicy == "" {
		pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	}
	_, err := w.client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
}

func (w *world) pod(t *testing.T, name string) *corev1.Pod {
	p, err := w.client.CoreV1().Pods("kube-system").Get(context.WithoutCancel(t.Context()), name, metav1.GetOptions{})
	require.NoError(t, err)
	return p
}

func (w *world) eventually(t *testing.T, is func() bool) {
	t.Helper()
	require.Eventually(t, is, time.Minute, 2*time.Millisecond)
}

func agentPod() *corev1.Pod {
	p := &corev1.Pod{}
	p.Name, p.Labels = "cilium-x", map[string]string{"k8s-app": "cilium"}
	p.Spec.HostNetwork = true
	p.Spec.InitContainers = []corev1.Container{{Name: "config", Image: "quay.io/cilium/cilium:v1.18.7"}}
	p.Spec.Containers = []corev1.Container{{Name: "cilium-agent", Image: "quay.io/cilium/cilium:v1.18.7"}}
	return p
}

// ciliumConfig is the chart's ConfigMap, which an agent needs to start.
func ciliumConfig() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cilium-config", Namespace: "kube-system"},
		Data: map[string]string{"cluster-name": "infra", "cluster-id": "1"}}
}

func plainPod(name string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Name = name
	p.Spec.Containers = []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10"}}
	return p
}
