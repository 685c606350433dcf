package health

import (
	"fmt"
	"strings"
)

// A Ready agent may still lack the API server or its key-value store: readiness says that it has started, this says that it works.
func ciliumStatus(spec *GateSpec) Check[*Cluster] {
	return Check[*Cluster]{Name: "every Cilium agent says of itself that it is well", Evaluate: func(seen *Cluster) []Result {
		if spec.Cilium == nil {
			return withoutCNI()
		}
		if results := agentsReady(spec, seen); results != nil {
			return results
		}
		var results []Result
		for _, node := range spec.Nodes {
			status := seen.CiliumStatus[node.Name]
			result := passed(node.Name)
			switch {
			case !status.Asked:
				result = unseen(node.Name, "its status")
			case status.Err != "":
				result = failed(node.Name, "its status cannot be had: "+status.Err)
			case len(status.Problems) > 0:
				result = failed(node.Name, strings.Join(status.Problems, "; "))
			}
			if result.Verdict == Failed && !result.Unseen {
				result.Evidence = status.Remarks
				result.Command = fmt.Sprintf("kubectl -n %s exec %s -c cilium-agent -- cilium-dbg status --verbose", spec.Cilium.Namespace, status.Pod)
				result = result.asks(Question{Kind: PodLog, Namespace: spec.Cilium.Namespace, Name: status.Pod, Container: "cilium-agent"})
			} else if result.Verdict == Passed {
				result.Reason = strings.Join(status.Remarks, "; ")
			}
			results = append(results, result)
		}
		return results
	}}
}
