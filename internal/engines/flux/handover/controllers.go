package handover

import (
	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
)

var controllersRun = check{
	Name:   "flux-operator and Flux's controllers run",
	Looks:  "the Deployment of flux-operator and those of Flux in its namespace: all pods are of the newest spec and Ready",
	ByHand: "kubectl -n flux-system get deployments,pods",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		if result, missing := seen.Workloads.Unread("", "Flux's Deployments"); missing {
			return []health.Result{result}
		}
		var results []health.Result
		for _, set := range seen.Workloads.Items {
			ofFlux := set.Release == cluster.FluxOperator || set.Labels["app.kubernetes.io/part-of"] == "flux"
			if set.Kind == "Deployment" && set.Namespace == spec.Namespace && ofFlux {
				results = append(results, set.Rollout(seen.Pods))
			}
		}
		if len(results) == 0 {
			result := health.Fail("", "namespace "+spec.Namespace+" has no Deployment of flux-operator or Flux")
			result.Command = "kubectl -n " + spec.Namespace + " get deployments,pods"
			return []health.Result{result}
		}
		return results
	},
}
