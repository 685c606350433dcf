package gate

import (
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/health"
)

// TalosNode is what the Talos API of a node says.
type TalosNode struct {
	Asked    bool
	Err      *health.Broken // services cannot be listed
	Hint     string         // what the machine shows of the reason; only with Err
	Services map[string]talosapi.Service
	Version  *Version          // of the Talos that runs; nil before it was asked for
	Etcd     Etcd              // only of control planes
	Ranges   *ControllerRanges // only of control planes; nil before it was asked for

	Parameters *KernelParameters // nil before they were asked for
}

var talosAnswers = check{
	Name:   "the Talos API answers on every node",
	Looks:  "every declared address answers with the talosconfig's certificate; if not, see the VM's console",
	ByHand: "talosctl -n ADDRESS version",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		var results []health.Result
		reasons := map[string]bool{}
		for _, node := range spec.Nodes {
			talos := seen.Talos[node.Name]
			result, reason := health.Pass(node.Name), ""
			switch {
			case talos.Err != nil:
				reason = talos.Err.Reason
				result = health.Fail(node.Name, "does not answer at "+node.Address.String()+": "+reason)
				result.Hopeless = talos.Err.Hopeless
				if talos.Hint != "" {
					result = result.WithEvidence(talos.Hint)
				}
			case !talos.Asked:
				result = health.NotSeen(node.Name, "Talos API")
			}
			reasons[reason] = true
			results = append(results, result)
		}
		// A cause that all nodes share, such as refused credentials, is reported once.
		if len(reasons) == 1 && !reasons[""] && len(results) > 1 {
			err := seen.Talos[spec.Nodes[0].Name].Err
			result := health.Fail("", "no node answers: "+err.Reason)
			result.Hopeless = err.Hopeless
			return []health.Result{result.WithCommand("talosctl -n " + spec.Nodes[0].Address.String() + " version")}
		}
		return results
	},
}
