package workloads

import "github.com/slipway-platform/slipway/internal/health"

// Answer is the API's answer to a sample.
type Answer struct {
	Asked bool
	Err   *health.Broken // nil: the API accepts it
	Lost  int            // how often the API stopped accepting it
}

// Only an answer shows that the API server reaches a webhook and trusts its certificate.
var samplesAccepted = health.Check[*Spec, *Cluster]{
	Name:   "the API accepts the kinds that the releases serve",
	Looks:  "one object of each such kind, sent as a dry run",
	ByHand: "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		if len(spec.Accepts) == 0 {
			return []health.Result{health.Skip("", "there are no samples to try")}
		}
		if !Run(spec, seen) {
			return []health.Result{health.Block("", "not every workload runs")}
		}
		var results []health.Result
		for _, sample := range spec.Accepts {
			title := sample.Title()
			answer := seen.Samples[title]
			result := health.Pass(title)
			switch {
			case !answer.Asked:
				result = health.NotSeen(title, "the API's answer")
			case answer.Err != nil:
				result = health.Fail(title, "is refused: "+answer.Err.Reason)
			}
			result.Lost = answer.Lost
			results = append(results, result)
		}
		return results
	},
}
