package cilium

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	ciliumEndpoints  = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumendpoints"}
	ciliumIdentities = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumidentities"}
)

// endpoints are the CiliumEndpoints that an agent has written, with the addresses in them.
type endpoints struct{ written map[types.UID]string }

// writeEndpoints writes a CiliumEndpoint for every pod of the node that has an address of its own. The API server deletes it with the
// pod, which owns it.
func (a *agent) writeEndpoints(ctx context.Context) error {
	if a.Cluster.Pods == nil || a.Cluster.PodAddresses == nil {
		return nil
	}
	at := map[string][]string{} // addresses by "namespace/name"
	for ip, pod := range a.Cluster.PodAddresses(a.Node) {
		at[pod] = append(at[pod], ip)
	}
	if a.endpoints.written == nil {
		a.endpoints.written = map[types.UID]string{}
	}
	here := map[types.UID]bool{}
	var errs []error
	for _, pod := range a.Cluster.Pods(a.Node) {
		ips := at[pod.Namespace+"/"+pod.Name]
		if len(ips) == 0 || pod.DeletionTimestamp != nil {
			continue
		}
		here[pod.UID] = true
		slices.SortFunc(ips, func(x, y string) int { return strings.Compare(family(x), family(y)) })
		what := strings.Join(ips, ",")
		if a.endpoints.written[pod.UID] == what {
			continue
		}
		if err := a.writeEndpoint(ctx, pod, ips); err != nil {
			errs = append(errs, err)
			continue
		}
		a.endpoints.written[pod.UID] = what
	}
	maps.DeleteFunc(a.endpoints.written, func(uid types.UID, _ string) bool { return !here[uid] })
	return errors.Join(errs...)
}

func (a *agent) writeEndpoint(ctx context.Context, pod *corev1.Pod, ips []string) error {
	labels, err := a.securityLabels(ctx, pod)
	if err != nil {
		return err
	}
	id, err := a.shared.identities.of(ctx, a, labels)
	if err != nil {
		return err
	}
	addressing, list := map[string]any{}, []any{}
	for _, ip := range ips {
		addressing[family(ip)] = ip
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, key+"="+labels[key])
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cilium.io/v2", "kind": "CiliumEndpoint",
		"metadata": map[string]any{
			"name": pod.Name, "namespace": pod.Namespace,
			"ownerReferences": []any{map[string]any{
				"apiVersion": "v1", "kind": "Pod", "name": pod.Name, "uid": string(pod.UID), "blockOwnerDeletion": true}},
		},
		"status": map[string]any{
			"id": int64(rand.IntN(4000) + 1), "state": "ready", "encryption": map[string]any{},
			"external-identifiers": map[string]any{
				"k8s-namespace": pod.Namespace, "k8s-pod-name": pod.Name, "pod-name": pod.Namespace + "/" + pod.Name},
			"identity":   map[string]any{"id": id, "labels": list},
			"networking": map[string]any{"addressing": []any{addressing}, "node": a.NodeIP.String()},
		},
	}}
	object.SetLabels(pod.Labels)
	client := a.Cluster.Dynamic.Resource(ciliumEndpoints).Namespace(pod.Namespace)
	_, err = client.Create(ctx, object, metav1.CreateOptions{FieldManager: "cilium-agent"})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	have, err := client.Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	object.SetResourceVersion(have.GetResourceVersion())
	_, err = client.Update(ctx, object, metav1.UpdateOptions{FieldManager: "cilium-agent"})
	return err
}

// irrelevant are the labels that Cilium leaves out of identities by default.
var irrelevant = regexp.MustCompile(`^(.*\.)?(kubernetes|k8s)\.io|^io\.kubernetes|^pod-template-(generation|hash)` +
	`|^controller-(revision-hash|uid)|^annotation|^etcd_node`)

// securityLabels are the labels by which a pod has its identity.
func (a *agent) securityLabels(ctx context.Context, pod *corev1.Pod) (map[string]string, error) {
	namespace, err := a.Cluster.Client.CoreV1().Namespaces().Get(ctx, pod.Namespace, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	account := cmp.Or(pod.Spec.ServiceAccountName, "default")
	labels := map[string]string{
		"k8s:io.cilium.k8s.policy.cluster": a.settings().cluster(), "k8s:io.cilium.k8s.policy.serviceaccount": account,
		"k8s:io.kubernetes.pod.namespace": pod.Namespace,
	}
	for key, value := range namespace.Labels {
		labels["k8s:io.cilium.k8s.namespace.labels."+key] = value
	}
	for key, value := range pod.Labels {
		if strings.HasPrefix(key, "app.kubernetes.io") || !irrelevant.MatchString(key) {
			labels["k8s:"+key] = value
		}
	}
	return labels, nil
}

// identityAllocator gives identities to sets of labels: for each the CiliumIdentity that exists, or a new one. It is one for all agents
// of a cluster, so that no two create the same. Identities that nothing uses any more stay, as in Cilium for a quarter of an hour.
type identityAllocator struct {
	mu    sync.Mutex
	known map[string]int64
}

func (s *identityAllocator) of(ctx context.Context, a *agent, labels map[string]string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	client := a.Cluster.Dynamic.Resource(ciliumIdentities)
	if s.known == nil {
		list, err := client.List(ctx, metav1.ListOptions{})
		if err != nil {
			return 0, err
		}
		s.known = map[string]int64{}
		for _, one := range list.Items {
			have, _, err := unstructured.NestedStringMap(one.Object, "security-labels")
			if id, parseErr := strconv.ParseInt(one.GetName(), 10, 64); err == nil && parseErr == nil {
				s.known[labelKey(have)] = id
			}
		}
	}
	key := labelKey(labels)
	if id, is := s.known[key]; is {
		return id, nil
	}
	security, plain := map[string]any{}, map[string]string{}
	for name, value := range labels {
		security[name] = value
		if short := strings.TrimPrefix(name, "k8s:"); !strings.HasPrefix(short, "io.cilium.k8s.namespace.labels.") {
			plain[short] = value
		}
	}
	between := identities(a.settings())
	for {
		id := between.MinIdentity + rand.Int64N(between.MaxIdentity-between.MinIdentity)
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "cilium.io/v2", "kind": "CiliumIdentity", "metadata": map[string]any{"name": strconv.FormatInt(id, 10)},
			"security-labels": security,
		}}
		object.SetLabels(plain)
		_, err := client.Create(ctx, object, metav1.CreateOptions{FieldManager: "cilium-agent"})
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		if err == nil {
			s.known[key] = id
		}
		return id, err
	}
}

func labelKey(labels map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(key + "=" + labels[key] + ";")
	}
	return b.String()
}
