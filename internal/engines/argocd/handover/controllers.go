package handover

import (
	"github.com/slipway-platform/slipway/internal/health"
)

var controllersRun = check{
	Name: "Argo CD's controllers run",
	Looks: "Deployments and StatefulSets with the label `app.kubernetes.io/part-of=argocd` in Argo CD's namespace: " +
		"all pods are of the newest spec and Ready",
	ByHand: "kubectl -n argocd get deployments,statefulsets,pods",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		if result, missing := seen.Workloads.Unread("", "Argo CD's workloads"); missing {
			return []health.Result{result}
		}
		var results []health.Result
		for _, set := range seen.Workloads.Items {
			if set.Namespace == spec.Namespace && set.Kind != "DaemonSet" && set.Labels["app.kubernetes.io/part-of"] == "argocd" {
				results = append(results, set.Rollout(seen.Pods))
			}
		}
		if len(results) == 0 {
			result := health.Fail("", "namespace "+spec.Namespace+" has no Deployment or StatefulSet of Argo CD")
			result.Command = "kubectl -n " + spec.Namespace + " get deployments,statefulsets,pods"
			return []health.Result{result}
		}
		return results
	},
}

// controllers reports whether Argo CD's controllers run. Without them, the status of an Application is as they left it.
func (seen *Cluster) controllers(spec *Spec) bool {
	return health.Hold(controllersRun.Judge(spec, seen))
}
