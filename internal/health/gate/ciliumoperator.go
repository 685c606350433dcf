package gate

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

// The Deployment has two replicas that must run on different nodes. With one node, one of them stays Pending, and that is normal.
var ciliumOperator = check{
	Name:   "the Cilium operator is Ready",
	Looks:  "as many of its replicas as there are nodes that can run it, by labels and taints: with one such node, one Pending pod is normal",
	ByHand: "kubectl -n NAMESPACE describe deployment cilium-operator",
	Judge: withCilium(func(spec *Spec, seen *Cluster) []health.Result {
		if results := unread(seen, "", "operator pods", seen.Operators); results != nil {
			return results
		}
		if results := unread(seen, "", "the operator's Deployment", seen.Operator); results != nil {
			return results
		}
		if len(seen.Operator.Items) == 0 {
			return []health.Result{health.Block("", "Cilium is not installed")}
		}
		operator, usable := seen.Operator.Items[0], 0
		replicas, leftOut := operator.Desired, seen.leftOut(spec)
		for _, node := range seen.Nodes.Items {
			if !node.Cordoned && !leftOut(node.Name) && node.takes(operator) {
				usable++
			}
		}
		want := max(1, min(replicas, usable))
		ready, lost, notReady := 0, 0, []health.Result{}
		for _, pod := range seen.Operators.Items {
			lost += pod.Lost
			if pod.Deleting {
				continue
			}
			if result := pod.ReadyResult(pod.Name); result.Verdict == health.Passed {
				ready++
			} else {
				notReady = append(notReady, result)
			}
		}
		switch {
		case ready >= want:
			result := health.Pass("")
			result.Lost = lost
			if len(notReady) > 0 && want < replicas {
				result.Reason = fmt.Sprintf("%d of %d pods, as many as %d node can run", ready, replicas, usable)
			}
			return []health.Result{result}
		case len(notReady) > 0:
			return notReady
		}
		result := health.Fail("", "no operator pod exists")
		if ready > 0 {
			result.Reason = fmt.Sprintf("%d of %d pods are Ready and no other exists", ready, want)
		}
		result = result.WithCommand("kubectl -n NAMESPACE describe deployments,replicasets -l " + OperatorSelector)
		for _, w := range seen.Operator.Items {
			result = result.Asks(w.Events())
		}
		return []health.Result{result}
	}),
}

// takes reports whether the node's labels and taints let the pods of a workload run there.
func (n Node) takes(w kube.Workload) bool {
	for key, value := range w.NodeSelector {
		if has, labelled := n.Labels[key]; !labelled || has != value {
			return false
		}
	}
	return !slices.ContainsFunc(n.Taints, func(text string) bool {
		i := strings.LastIndex(text, ":")
		taint := corev1.Taint{Effect: corev1.TaintEffect(text[i+1:])}
		taint.Key, taint.Value, _ = strings.Cut(text[:max(i, 0)], "=")
		return taint.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(w.Tolerations, func(by corev1.Toleration) bool {
			return by.ToleratesTaint(klog.Logger{}, &taint, false)
		})
	})
}
