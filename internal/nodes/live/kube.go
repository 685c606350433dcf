package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/siderolabs/gen/xslices"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/syntax"
	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// requestTimeout is the limit of one request to one API server, so that another one is asked within turn's timeout.
const requestTimeout = 4 * time.Second

// kube asks the API servers of the control planes, at their own addresses: the virtual IP moves while control planes take their turns.
type kube struct {
	talos     talosapi.Clients
	addresses []netip.Addr // of the control planes

	mu      sync.Mutex
	servers []server // made when a control plane has handed out the kubeconfig
	answers int      // index of the server that answered last
}

// server is the API server of a control plane.
type server struct {
	address netip.Addr
	*kubeapi.Client
}

// connect makes the clients, unless there are some.
func (k *kube) connect(ctx context.Context) ([]server, int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.servers != nil {
		return k.servers, k.answers, nil
	}
	content, err := k.kubeconfig(ctx)
	if err != nil {
		return nil, 0, err
	}
	shared, err := kubeapi.New(content, requestTimeout)
	if err != nil {
		return nil, 0, err
	}
	var servers []server
	for _, address := range k.addresses {
		one, err := shared.At(address.String())
		if err != nil {
			return nil, 0, err
		}
		servers = append(servers, server{address, one})
	}
	k.servers = servers
	return k.servers, 0, nil
}

// kubeconfig asks all control planes at once: of five, two may be dead, and a look at the cluster is too short to ask one after the other.
func (k *kube) kubeconfig(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, talosapi.CallTimeout)
	defer cancel()
	return turn.First(k.addresses, func(address netip.Addr) ([]byte, error) {
		content, err := k.talos[address].Kubeconfig(ctx)
		if err != nil {
			err = fmt.Errorf("%s gives no kubeconfig: %w", address, talosapi.Message(err))
		}
		return content, err
	})
}

// ask calls f with one API server after the other, first the one that answered last, until one answers. A refusal is an answer, unless
// the server does not accept the client: another one may, and if none does, the next request comes with another kubeconfig. After any other
// error a request may be repeated, because each request of this package has the same effect twice as once.
func (k *kube) ask(ctx context.Context, f func(dynamic.Interface) error) error {
	return k.askServer(ctx, func(one *kubeapi.Client) error { return f(one.Objects) })
}

// askServer is ask for requests that are not about objects alone.
func (k *kube) askServer(ctx context.Context, f func(*kubeapi.Client) error) error {
	servers, first, err := k.connect(ctx)
	if err != nil {
		return err
	}
	problem, unauthorized := errors.New("there is no control plane"), false
	for i := range servers {
		at := (first + i) % len(servers)
		problem = f(servers[at].Client)
		switch {
		case apierrors.IsUnauthorized(problem):
			unauthorized = true
		case problem == nil || kubeapi.Refused(problem):
			k.mu.Lock()
			k.answers = at
			k.mu.Unlock()
			return problem
		}
		if ctx.Err() != nil {
			break
		}
	}
	if unauthorized {
		k.mu.Lock()
		k.servers, k.answers = nil, 0
		k.mu.Unlock()
	}
	return problem
}

// Nodes implements turn.Cluster.
func (c *Cluster) Nodes(ctx context.Context) (map[string]turn.KubeNode, error) {
	nodes, err := List[corev1.Node](ctx, c, kubeapi.Nodes, metav1.ListOptions{})
	return xslices.ToMap(nodes, func(node corev1.Node) (string, turn.KubeNode) { return node.Name, kubeNode(node) }), err
}

// stateTaints is the prefix of the taints that Kubernetes sets for the state of a node.
const stateTaints = "node.kubernetes.io/"

func kubeNode(node corev1.Node) turn.KubeNode {
	_, ours := node.Annotations[cluster.AnnotationCordoned]
	_, oldOurs := node.Annotations[cluster.OldAnnotationCordoned]
	seen := turn.KubeNode{
		Unschedulable: node.Spec.Unschedulable, Ours: ours || oldOurs,
		Kubelet: node.Status.NodeInfo.KubeletVersion, System: node.Status.NodeInfo.OSImage, Boot: node.Status.NodeInfo.BootID,
	}
	for _, taint := range node.Spec.Taints {
		switch {
		case taint.Key == syntax.AgentTaint:
			seen.NoAgent = true
		case taint.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(taint.Key, stateTaints):
			seen.Repels = true
		}
	}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP && !seen.Address.IsValid() {
			seen.Address, _ = netip.ParseAddr(address.Address)
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			seen.Ready = condition.Status == corev1.ConditionTrue
		}
	}
	return seen
}

// Cordon implements turn.Cluster.
func (c *Cluster) Cordon(ctx context.Context, node string) error {
	annotated := map[string]any{"annotations": map[string]any{cluster.AnnotationCordoned: "true"}}
	return c.patchNode(ctx, node, map[string]any{"metadata": annotated, "spec": map[string]any{"unschedulable": true}})
}

// Uncordon implements turn.Cluster.
func (c *Cluster) Uncordon(ctx context.Context, node string) error {
	return c.patchNode(ctx, node, map[string]any{"metadata": notAnnotated(), "spec": map[string]any{"unschedulable": nil}})
}

// Forget implements turn.Cluster.
func (c *Cluster) Forget(ctx context.Context, node string) error {
	return c.patchNode(ctx, node, map[string]any{"metadata": notAnnotated()})
}

// notAnnotated removes the annotation of this release, and of those before it.
func notAnnotated() map[string]any {
	return map[string]any{"annotations": map[string]any{cluster.AnnotationCordoned: nil, cluster.OldAnnotationCordoned: nil}}
}

func (c *Cluster) patchNode(ctx context.Context, node string, change map[string]any) error {
	return c.Patch(ctx, kubeapi.Nodes, "", node, change)
}

// Pods implements turn.Cluster.
func (c *Cluster) Pods(ctx context.Context, node string) (all []turn.Pod, err error) {
	found, err := c.Select(ctx, kubeapi.Pods, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	for i := range found {
		all = append(all, pod(&found[i]))
	}
	return all, err
}

// pod returns what a drain must know of a pod.
func pod(object *unstructured.Unstructured) turn.Pod {
	seen := turn.Pod{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: string(object.GetUID()), Deleting: object.GetDeletionTimestamp() != nil,
	}
	_, static := object.GetAnnotations()[corev1.MirrorPodAnnotationKey]
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	owner := metav1.GetControllerOfNoCopy(object)
	ended := phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed)
	seen.Stays = static || ended || owner != nil && owner.Kind == "DaemonSet"
	return seen
}

// Evict implements turn.Cluster.
func (c *Cluster) Evict(ctx context.Context, pod turn.Pod) error {
	eviction := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "policy/v1", "kind": "Eviction",
		"metadata":      map[string]any{"name": pod.Name, "namespace": pod.Namespace},
		"deleteOptions": map[string]any{"preconditions": map[string]any{"uid": pod.UID}}, // not a newer pod of that name
	}}
	err := c.kube.ask(ctx, func(objects dynamic.Interface) error {
		_, err := objects.Resource(kubeapi.Pods).Namespace(pod.Namespace).Create(ctx, eviction, metav1.CreateOptions{}, "eviction")
		return err
	})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return turn.ErrGone
	case apierrors.IsTooManyRequests(err):
		return turn.BlockedError{Reason: budget(err)}
	}
	return err
}

// budget returns which PodDisruptionBudget refuses an eviction, and what it needs.
func budget(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if cause.Type == "DisruptionBudget" {
				return cause.Message
			}
		}
	}
	return err.Error()
}

// Version asks the API server at a control plane's own address for its version, once it is ready.
func (c *Cluster) Version(ctx context.Context, node turn.Node) (string, error) {
	if _, err := c.get(ctx, node, "readyz"); err != nil {
		return "", err
	}
	answer, err := c.get(ctx, node, "version")
	if err != nil {
		return "", err
	}
	var info struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(answer, &info); err != nil || info.GitVersion == "" {
		return "", errors.New("/version has no version")
	}
	return info.GitVersion, nil
}

// metricsTimeout is for the metrics of an API server that answers: those of a big one are tens of megabytes, and a busy one takes its time.
const metricsTimeout = time.Minute

// Metrics returns the metrics of the API server at a control plane's own address.
func (c *Cluster) Metrics(ctx context.Context, node turn.Node) (string, error) {
	server, err := c.server(ctx, node)
	if err != nil {
		return "", err
	}
	if _, err := server.Read(ctx, "/version"); err != nil {
		return "", err
	}
	reading, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	answer, err := server.ReadLong(reading, "/metrics")
	return string(answer), err
}

// get reads a path of the API server at a control plane's own address.
func (c *Cluster) get(ctx context.Context, node turn.Node, path string) ([]byte, error) {
	server, err := c.server(ctx, node)
	if err != nil {
		return nil, err
	}
	return server.Read(ctx, "/"+path)
}

// server returns the client of the API server at a control plane's own address.
func (c *Cluster) server(ctx context.Context, node turn.Node) (*kubeapi.Client, error) {
	servers, _, err := c.kube.connect(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range servers {
		if one.address == node.Address {
			return one.Client, nil
		}
	}
	return nil, fmt.Errorf("%s is no control plane", node.Name)
}

// Image returns the image that a static pod of a control plane runs, and whether the pod is Ready; "" if there is no such pod.
func (c *Cluster) Image(ctx context.Context, node turn.Node, component string) (image string, ready bool, err error) {
	static, err := c.StaticPod(ctx, node, component)
	if static == nil {
		return "", false, err
	}
	for _, container := range static.Spec.Containers {
		if container.Name == component {
			image = container.Image
		}
	}
	return image, kubeapi.PodReady(static), nil
}

// PodHash returns the hash by which the kubelet names a static pod of a control plane, and when the kubelet that has made the pod saw it
// first, by the node's clock; "" if there is no such pod. A kubelet that starts again leaves both as they are, unless it makes the pod
// anew.
func (c *Cluster) PodHash(ctx context.Context, node turn.Node, component string) (hash string, seen time.Time, err error) {
	static, err := c.StaticPod(ctx, node, component)
	if static == nil {
		return "", time.Time{}, err
	}
	// Without a time, nothing shows which kubelet has made the pod.
	seen, _ = time.Parse(time.RFC3339Nano, static.Annotations["kubernetes.io/config.seen"])
	return static.Annotations["kubernetes.io/config.hash"], seen, nil
}
