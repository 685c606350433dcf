package health

import "strings"

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
		if result.Verdict == Failed {
			result.Command = "kubectl get --raw '/readyz?verbose'"
		}
		return []Result{result}
	}}
}
