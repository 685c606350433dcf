package cilium

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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/lab/wait"
	"github.com/slipway-platform/slipway/lab/workload"
)

// agentNotReadyTaint keeps pods away from a node until its agent runs.
const agentNotReadyTaint = "node.cilium.io/agent-not-ready"

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// operator is a simulated cilium-operator, as far as others can see it: it installs the CRDs, taints the nodes whose
// agent is not ready, sets the condition NetworkUnavailable, assigns load-balancer addresses, and accepts Cilium's
// GatewayClass. Only the leader of the replicas acts.
type operator struct {
	*workload.Instance
	workload.Container
	shared *Cilium
}

func (n *Cilium) startOperator(ctx context.Context, c workload.Container) (*workload.Instance, error) {
	if c.Cluster.Dynamic == nil {
		return nil, errors.New("cilium-operator: no client for custom resources")
	}
	i, ctx := workload.NewInstance(ctx)
	o := &operator{Instance: i, Container: c, shared: n}
	fmt.Fprintf(c.Log, "level=info msg=\"Cilium Operator %s (simulated)\" subsys=cilium-operator\n", version(c))
	i.After(c.Cluster.PodStart, func() {
		defer n.addOperator(o)()
		config, err := readCiliumConfig(ctx, c)
		if err == nil {
			err = o.installCRDs(ctx, n.CRDs)
		}
		if err != nil {
			if ctx.Err() == nil {
				fmt.Fprintf(c.Log, "level=fatal msg=\"unable to start\" error=%q subsys=cilium-operator\n", err)
				i.Exit(1)
			}
			return
		}
		n.crdsInstalled()
		i.SetReady(true)
		if config.on("enable-gateway-api") {
			go o.gatewayAPI(ctx)
		}
		go o.loadBalancerIPAM(ctx)
		o.run(ctx)
	})
	return i, nil
}

// installCRDs creates the CRDs that do not exist.
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
		_, err = o.Cluster.Dynamic.Resource(crdResource).Create(ctx, crd, metav1.CreateOptions{FieldManager: "cilium-operator"})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			errs = append(errs, fmt.Errorf("unable to create CRD %s: %w", crd.GetName(), err))
		}
		return nil
	})
	return errors.Join(append(errs, err)...)
}

// run follows the agents' pods until the operator ends. The ticker finds changes of Nodes.
func (o *operator) run(ctx context.Context) {
	agents := o.watchAgents(ctx)
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		changed := o.shared.Changed()
		if o.shared.isLeader(o) {
			on := agents()
			for _, n := range o.Cluster.Nodes() {
				if err := o.updateNode(ctx, n, on[n.Name]); err != nil && ctx.Err() == nil {
					fmt.Fprintf(o.Log, "level=warning msg=\"Error updating taints and conditions for the node, will retry\" "+
						"nodeName=%s error=%q\n", n.Name, err)
				}
			}
		}
		// Many agents start at the same time. Without this pause the operator would write the same changes more than
		// once, before it sees its own first write.
		if !wait.Pause(ctx, 100*time.Millisecond) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-tick.C:
		}
	}
}

// agentState is what the pods of the agent on a node say.
type agentState struct{ scheduled, ready bool }

// watchAgents returns a function that returns what the agents' pods say, by node. The operator knows no more of the agents:
// operator/watchers/node_taint.go of Cilium 1.20. What it keeps of a pod does not say whether the pod is being deleted.
func (o *operator) watchAgents(ctx context.Context) func() map[string]agentState {
	pods := informers.NewSharedInformerFactoryWithOptions(o.Cluster.Client, 0, informers.WithNamespace(o.Pod.Namespace),
		informers.WithTweakListOptions(func(l *metav1.ListOptions) { l.LabelSelector = "k8s-app=cilium" })).Core().V1().Pods()
	wake := func(any) { o.shared.Notify() }
	_, _ = pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{ // fails for an informer that has ended
		AddFunc: wake, UpdateFunc: func(_, pod any) { wake(pod) }, DeleteFunc: wake,
	})
	go pods.Informer().Run(ctx.Done())
	cache.WaitForCacheSync(ctx.Done(), pods.Informer().HasSynced)
	return func() map[string]agentState {
		states := map[string]agentState{}
		all, _ := pods.Lister().List(labels.Everything()) // a cache does not fail
		for _, pod := range all {
			state := states[pod.Spec.NodeName]
			state.scheduled = true
			state.ready = state.ready || slices.ContainsFunc(pod.Status.Conditions, isReady)
			states[pod.Spec.NodeName] = state
		}
		return states
	}
}

func isReady(c corev1.PodCondition) bool {
	return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
}

// updateNode removes the taint of a node whose agent is ready, and taints one on which an agent is scheduled and not ready.
func (o *operator) updateNode(ctx context.Context, n *corev1.Node, agent agentState) error {
	isOurs := func(t corev1.Taint) bool { return t.Key == agentNotReadyTaint }
	tainted := slices.ContainsFunc(n.Spec.Taints, isOurs)
	if !agent.ready {
		if tainted || !agent.scheduled {
			return nil
		}
		fmt.Fprintf(o.Log, "level=info msg=\"Cilium pod scheduled but not running for node; setting taint\" nodeName=%s\n", n.Name)
		taint := corev1.Taint{Key: agentNotReadyTaint, Effect: corev1.TaintEffectNoSchedule}
		return o.setTaints(ctx, n, append(slices.Clone(n.Spec.Taints), taint))
	}
	var errs []error
	if tainted {
		errs = append(errs, o.setTaints(ctx, n, slices.DeleteFunc(slices.Clone(n.Spec.Taints), isOurs)))
	}
	if !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeNetworkUnavailable && c.Status == corev1.ConditionFalse
	}) {
		errs = append(errs, o.networkAvailable(ctx, n))
	}
	return errors.Join(errs...)
}

func (o *operator) setTaints(ctx context.Context, n *corev1.Node, taints []corev1.Taint) error {
	// With the version, the patch fails if somebody else has changed the taints meanwhile.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": n.ResourceVersion},
		"spec":     map[string]any{"taints": taints},
	})
	if err != nil {
		return err
	}
	_, err = o.Cluster.Client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsConflict(err) {
		return nil // the next round tries again
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
