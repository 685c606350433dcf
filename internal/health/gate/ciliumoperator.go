package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster/syntax"
	"github.com/slipway-platform/slipway/internal/health"
)

// The Deployment has two replicas that must run on different nodes. With one node, one of them stays Pending, and that is normal.
var ciliumOperator = check{
	Name:   "the Cilium operator is Ready",
	Looks:  "as many of its replicas as there are nodes that can run it: with one such node, one Pending pod is normal",
	ByHand: "kubectl -n NAMESPACE describe deployment cilium-operator",
	Judge: withCilium(func(spec *Spec, seen *Cluster) []health.Result {
		if results := unread(seen, "", "operator pods", seen.Operators); results != nil {
			return results
		}
		if seen.Operator.Synced && len(seen.Operator.Items) == 0 {
			return []health.Result{health.Block("", "Cilium is not installed")}
		}
		replicas := 2
		if len(seen.Operator.Items) > 0 {
			replicas = seen.Operator.Items[0].Desired
		}
		usable := 0
		for _, node := range seen.Nodes.Items {
			if !node.Cordoned && !spec.Skip.Has(node.Name) && node.takesOperator() {
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

// operatorTolerates are the keys of taints that the operator tolerates, by the chart's defaults (cilium 1.18 to 1.20). With more of them in
// the user's values, fewer replicas than could run are demanded.
var operatorTolerates = []string{
	"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node.kubernetes.io/not-ready",
	"node.cloudprovider.kubernetes.io/uninitialized", syntax.AgentTaint,
}

// takesOperator reports whether the node's taints let the operator run there.
func (n Node) takesOperator() bool {
	return !slices.ContainsFunc(n.Taints, func(taint string) bool {
		i := strings.LastIndex(taint, ":")
		key, _, _ := strings.Cut(taint[:max(i, 0)], "=")
		return taint[i+1:] != "PreferNoSchedule" && !slices.Contains(operatorTolerates, key)
	})
}
