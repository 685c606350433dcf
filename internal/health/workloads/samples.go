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
	Judge:  afterRollout("there are no samples to try", func(spec *Spec) []Sample { return spec.Accepts }, Sample.judge),
}

func (s Sample) judge(seen *Cluster) health.Result {
	title := s.Title()
	answer := seen.Samples[title]
	result := health.Pass(title)
	switch {
	case !answer.Asked:
		result = health.NotSeen(title, "the API's answer")
	case answer.Err != nil:
		result = health.Fail(title, "is refused: "+answer.Err.Reason)
	}
	result.Lost = answer.Lost
	return result
}
