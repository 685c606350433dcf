package health

import (
	"fmt"
	"strings"
	"time"
)

// A clock that differs by more than this is worth a remark: certificates and leases go wrong soon after.
const clockTolerance = 10 * time.Second

func apiServerReady() Check[*Cluster] {
	return Check[*Cluster]{Name: "the API server is ready", Evaluate: func(seen *Cluster) []Result {
		api := seen.API
		result := passed("")
		switch {
		case !api.Asked:
			result = unseen("", "/readyz")
		case api.Err != nil:
			result = failed("", api.Err.Reason)
			result.Hopeless = api.Err.Hopeless
		case !api.Ready:
			result = failed("", "/readyz answers that it is not ready")
			if len(api.Failing) > 0 {
				result.Reason = "not ready: " + strings.Join(api.Failing, ", ")
			}
		}
		if broken := seen.gone(); broken != nil && result.Verdict == Passed {
			result = failed("", broken.Reason) // the watches notice before /readyz is asked again
		}
		result.Lost = api.Lost
		if api.Ahead.Abs() > clockTolerance {
			skew := fmt.Sprintf("its clock is %s ahead of this machine's", api.Ahead)
			if api.Ahead < 0 {
				skew = fmt.Sprintf("its clock is %s behind this machine's", -api.Ahead)
			}
			if result.Verdict == Passed {
				result.Reason = skew
			} else {
				result.Evidence = append(result.Evidence, skew)
			}
		}
		if result.Verdict == Failed {
			result.Command = "kubectl get --raw '/readyz?verbose'"
		}
		return []Result{result}
	}}
}
