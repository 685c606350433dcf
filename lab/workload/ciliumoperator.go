package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// agentNotReadyTaint is what nodes may be registered with, to keep pods away until the agent runs.
const agentNotReadyTaint = "node.cilium.io/agent-not-ready"

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	ciliumNodes = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumnodes"}
)

// operator does what of cilium-operator's work others can see: it installs the CRDs, removes the taint
// agent-not-ready, says that the network is there, and keeps a CiliumNode per agent. Both replicas do so: every step may
// be done twice.
type operator struct {
	*Instance
	Container
	client dynamic.Interface
	known  map[types.UID]bool // nodes that have their CiliumNode
}

func startOperator(ctx context.Context, c Container, crds string) (*Instance, error) {
	client, err := dynamic.NewForConfig(c.Cluster.REST)
	if err != nil {
		return nil, err
	}
	i := NewInstance()
	o := &operator{Instance: i, Container: c, client: client, known: map[types.UID]bool{}}
	fmt.Fprintf(c.Log, "simulated cilium-operator %s\n", ciliumVersion)
	i.after(c.Cluster.PodStart, func() {
		if err := o.installCRDs(ctx, crds); err != nil {
			fmt.Fprintln(c.Log, "level=fatal msg=\"unable to register CRDs\" error:", err)
			i.Exit(1)
			return
		}
		i.SetReady(true)
		o.run(ctx)
	})
	return i, nil
}

// installCRDs creates the definitions that are missing.
func (o *operator) installCRDs(ctx context.Context, dir string) error {
	if dir == "" {
		return nil
	}
	var errs []error
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(raw, &crd.Object); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if crd.GetKind() != "CustomResourceDefinition" {
			return nil
		}
		if _, err := o.client.Resource(definitions).Create(ctx, crd, metav1.CreateOptions{FieldManager: "cilium-operator"}); err != nil && !apierrors.IsAlreadyExists(err) {
			errs = append(errs, fmt.Errorf("%s: %w", crd.GetName(), err))
		}
		return nil
	})
	return errors.Join(append(errs, err)...)
}

// run follows the agents until the operator ends. The ticker finds nodes that are new to the API server.
func (o *operator) run(ctx context.Context) {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		changed := o.Cluster.Cilium.Changed()
		for _, n := range o.Cluster.Nodes() {
			if o.Cluster.Cilium.Ready(n.Name) {
				if err := o.admit(ctx, n); err != nil && ctx.Err() == nil {
					fmt.Fprintf(o.Log, "level=warning msg=\"node %s not updated\" error=%q\n", n.Name, err)
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-o.Done():
			return
		case <-changed:
		case <-tick.C:
		}
	}
}

// admit makes a node with a ready agent usable.
func (o *operator) admit(ctx context.Context, n *corev1.Node) error {
	var errs []error
	if slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == agentNotReadyTaint }) {
		errs = append(errs, o.removeTaint(ctx, n))
	}
	if !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeNetworkUnavailable && c.Status == corev1.ConditionFalse
	}) {
		errs = append(errs, o.networkAvailable(ctx, n))
	}
	return errors.Join(append(errs, o.ciliumNode(ctx, n))...)
}

func (o *operator) removeTaint(ctx context.Context, n *corev1.Node) error {
	taints := slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool { return t.Key == agentNotReadyTaint })
	// The version makes the patch fail where somebody else has changed the taints meanwhile.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": n.ResourceVersion}, "spec": map[string]any{"taints": taints}})
	if err != nil {
		return err
	}
	_, err = o.Cluster.Client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsConflict(err) {
		return nil // next round
	}
	return err
}

func (o *operator) networkAvailable(ctx context.Context, n *corev1.Node) error {
	now := metav1.Now()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{{
		Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse, Reason: "CiliumIsUp", Message: "Cilium is running on this node",
		LastHeartbeatTime: now, LastTransitionTime: now}}}})
	if err != nil {
		return err
	}
	_, err = o.Cluster.Client.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// ciliumNode creates the node's CiliumNode, where its kind is defined.
func (o *operator) ciliumNode(ctx context.Context, n *corev1.Node) error {
	if o.known[n.UID] {
		return nil
	}
	addresses := []any{map[string]any{"ip": internalIP(n), "type": "InternalIP"}}
	cn := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cilium.io/v2", "kind": "CiliumNode",
		"metadata": map[string]any{"name": n.Name, "ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Node", "name": n.Name, "uid": string(n.UID)}}},
		"spec": map[string]any{"addresses": addresses, "health": map[string]any{"ipv4": healthIP(n)},
			"ipam": map[string]any{"podCIDRs": []any{n.Spec.PodCIDR}}},
	}}
	client := o.client.Resource(ciliumNodes)
	_, err := client.Create(ctx, cn, metav1.CreateOptions{FieldManager: "cilium-agent"})
	if apierrors.IsNotFound(err) {
		return nil // the kind is not defined, yet
	}
	o.known[n.UID] = err == nil || apierrors.IsAlreadyExists(err)
	if o.known[n.UID] {
		return nil
	}
	return err
}
