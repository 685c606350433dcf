package handover

import "github.com/slipway-platform/slipway/internal/health"

var rootApplied = check{
	Name: "the root Application has applied the newest revision",
	Looks: "it was asked to compare anew and has compared its newest spec, has no error condition, is Synced and Healthy, " +
		"and its sync has ended without a failure",
	ByHand: "kubectl -n argocd describe application root",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		subject := kind + " " + spec.Namespace + "/" + spec.Root
		if result, missing := seen.Applications.Unread(subject, "it"); missing {
			return []health.Result{result}
		}
		tree := seen.judgeTree(spec)
		switch {
		case len(tree.members) == 0:
			return []health.Result{health.Block(subject, "it does not exist")}
		case tree.members[0].Deleting:
			return []health.Result{health.Block(subject, "it is being deleted")}
		}
		return []health.Result{tree.members[0].result}
	},
}
