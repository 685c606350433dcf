package gate

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/internal/health"
)

// Kubernetes assigns each node its pod ranges. If the Cilium agent uses others, its pods get addresses that no node routes to.
var ciliumRanges = check{
	Name:   "Cilium uses the pod ranges of each node",
	Looks:  "CiliumNode and agent have the pod ranges of the Node object",
	ByHand: "kubectl get ciliumnode NODE -o yaml; kubectl get node NODE -o jsonpath='{.spec.podCIDRs}'",
	Judge: withCilium(withNetwork(func(spec *Spec, seen *Cluster) []health.Result {
		if err := seen.Ranges.Err; err != nil && err.Unknown {
			return []health.Result{health.Block("", "the API server does not serve CiliumNodes yet")}
		}
		if results := unread(seen, "", "CiliumNodes", seen.Ranges); results != nil {
			return results
		}
		byName := xslices.ToMap(seen.Ranges.Items, func(ranges Ranges) (string, Ranges) { return ranges.Name, ranges })
		return eachRegistered(spec, seen, func(want Machine, node Node) health.Result {
			own, exists := byName[want.Name]
			pools := seen.CiliumStatus[want.Name].Pools
			agent, runs := seen.agentOn(want.Name)
			switch {
			case len(node.PodCIDRs) == 0:
				return health.Block(want.Name, want.Name+" has no pod range")
			case !runs || !agent.Ready:
				return health.Block(want.Name, "no Cilium agent is Ready on "+want.Name)
			case !exists:
				return health.Fail(want.Name, "has no CiliumNode yet")
			case !slices.Equal(own.CIDRs, node.PodCIDRs):
				result := health.Fail(want.Name, nodeRangesDiffer("Cilium uses", own.CIDRs, node.PodCIDRs))
				result.Hopeless = len(own.CIDRs) > 0
				return result
			case len(pools) > 0 && !slices.Equal(pools, node.PodCIDRs):
				return health.Fail(want.Name, nodeRangesDiffer("its agent gives addresses from", pools, node.PodCIDRs)).ForGood()
			}
			return health.Pass(want.Name)
		})
	})),
}

func nodeRangesDiffer(what string, used, given []netip.Prefix) string {
	return fmt.Sprintf("%s %s, the node was given %s", what, rangeNames(used), listed(given))
}
