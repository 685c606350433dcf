package cilium

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var ciliumNodes = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumnodes"}

// announce writes the node's CiliumNode, as an agent does with Kubernetes' pod ranges. Other agents and people read the
// node's addresses there. It does not write an unchanged one.
func (a *agent) announce(ctx context.Context, n *corev1.Node, ranges []string) error {
	spec := ciliumNodeSpec(n, ranges, a.settings().on("enable-wireguard"))
	raw, err := json.Marshal(map[string]any{"uid": n.UID, "spec": spec})
	if err != nil {
		return err
	}
	a.mu.Lock()
	same := a.node == string(raw)
	a.mu.Unlock()
	if same {
		return nil
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cilium.io/v2", "kind": "CiliumNode",
		"metadata": map[string]any{"name": n.Name, "labels": labelsOf(n),
			"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Node", "name": n.Name, "uid": string(n.UID)}}},
		"spec": spec,
	}}
	client := a.Cluster.Dynamic.Resource(ciliumNodes)
	_, err = client.Create(ctx, object, metav1.CreateOptions{FieldManager: "cilium-agent"})
	if apierrors.IsAlreadyExists(err) {
		delete(object.Object["metadata"].(map[string]any), "name")
		patch, marshalErr := json.Marshal(object.Object)
		if marshalErr != nil {
			return marshalErr
		}
		_, err = client.Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "cilium-agent"})
	}
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.node = string(raw)
	a.mu.Unlock()
	return nil
}

func labelsOf(n *corev1.Node) map[string]any {
	out := map[string]any{}
	for k, v := range n.Labels {
		out[k] = v
	}
	return out
}

func ciliumNodeSpec(n *corev1.Node, ranges []string, wireguard bool) map[string]any {
	var addresses, podCIDRs []any
	for _, ip := range internalIPs(n) {
		addresses = append(addresses, map[string]any{"ip": ip, "type": "InternalIP"})
	}
	health := map[string]any{}
	for i, ip := range healthIPs(ranges) {
		podCIDRs = append(podCIDRs, ranges[i])
		router := map[string]any{"ip": routerIP(ranges[i]), "type": "CiliumInternalIP"}
		addresses = append(addresses, router)
		health[family(ip)] = ip
	}
	encryption := map[string]any{}
	if wireguard {
		encryption["key"] = int64(255) // the fixed index of WireGuard
	}
	return map[string]any{
		"addresses": addresses, "health": health, "bootid": n.Status.NodeInfo.BootID, "encryption": encryption, "ingress": map[string]any{},
		"ipam": map[string]any{"podCIDRs": podCIDRs, "pools": map[string]any{}},
	}
}
