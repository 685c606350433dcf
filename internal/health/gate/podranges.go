package gate

import (
	"fmt"
	"net/netip"

	"github.com/slipway-platform/slipway/internal/health"
)

var podRanges = check{
	Name:   "every node gives pods addresses in the declared ranges",
	Looks:  "`spec.podCIDRs` of the node lie in the declared ranges, one of each family",
	ByHand: "kubectl get node NODE -o jsonpath='{.spec.podCIDRs}'",
	Judge: withNetwork(func(spec *Spec, seen *Cluster) []health.Result {
		return eachRegistered(spec, seen, func(want Machine, node Node) health.Result {
			problem := podRangeProblem(node.PodCIDRs, spec.Network.PodCIDRs)
			if problem == "" {
				return health.Pass(want.Name)
			}
			result := health.Fail(want.Name, problem)
			result.Hopeless = len(node.PodCIDRs) > 0 // Kubernetes never changes the range of a node
			return result
		})
	}),
}

func podRangeProblem(used, declared []netip.Prefix) string {
	switch {
	case len(used) == 0:
		return "has no pod range yet"
	case len(used) != len(declared):
		return fmt.Sprintf("pods get %s, of %d families instead of %d", listed(used), len(used), len(declared))
	}
	for i, part := range used {
		if whole := declared[i]; part.Bits() < whole.Bits() || !whole.Contains(part.Addr()) {
			return fmt.Sprintf("pods get %s, outside the declared %s", part, whole)
		}
	}
	return ""
}
