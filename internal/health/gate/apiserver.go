package gate

import (
	"fmt"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/health"
)

// APIServer is the answer to /readyz.
type APIServer struct {
	Asked   bool           // there was an answer, or an error
	Ready   bool           // the answer was 200
	Failing []string       // readyz checks that the server reports as failed
	Err     *health.Broken // there was no answer
	Ahead   time.Duration  // by how much the server's clock is ahead of this computer's, in whole seconds
	Lost    int            // number of transitions to not ready that the watch saw
}

// clockTolerance is the difference between two clocks above which the report has a remark: certificates and leases depend on the time.
const clockTolerance = 10 * time.Second

var apiServerReady = check{
	Name:   "the API server is ready",
	Looks:  "`/readyz` at the VIP answers 200 and all watches last; a clock that differs by more than 10 s is a remark",
	ByHand: "kubectl get --raw '/readyz?verbose'",
	Judge: func(_ *Spec, seen *Cluster) []health.Result {
		api := seen.API
		result := health.Pass("")
		switch {
		case !api.Asked:
			result = health.NotSeen("", "/readyz")
		case api.Err != nil:
			result = health.Fail("", api.Err.Reason)
			result.Hopeless = api.Err.Hopeless
		case len(api.Failing) > 0:
			result = health.Fail("", "not ready: "+strings.Join(api.Failing, ", "))
		case !api.Ready:
			result = health.Fail("", "/readyz answers that it is not ready")
		case seen.watchBroken() != nil: // a watch breaks before /readyz is asked again
			result = health.Fail("", seen.watchBroken().Reason)
		}
		result.Lost = api.Lost
		if api.Ahead.Abs() > clockTolerance {
			skew := fmt.Sprintf("its clock is %s ahead of this computer's", api.Ahead)
			if api.Ahead < 0 {
				skew = fmt.Sprintf("its clock is %s behind this computer's", -api.Ahead)
			}
			if result.Verdict == health.Passed {
				result.Reason = skew
			} else {
				result = result.WithEvidence(skew)
			}
		}
		return []health.Result{result}
	},
}

// watchBroken returns the error of a watch whose server does not answer any more; nil if there is none.
func (seen *Cluster) watchBroken() *health.Broken {
	for _, err := range []*health.Broken{
		seen.Nodes.Err, seen.Services.Err, seen.Agents.Err, seen.Operators.Err, seen.AgentSets.Err, seen.Operator.Err, seen.Config.Err,
		seen.Ranges.Err, seen.Envoys.Err, seen.EnvoySets.Err,
	} {
		if err != nil && err.Gone {
			return err
		}
	}
	return nil
}
