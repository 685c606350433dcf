package gate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/slipway-platform/slipway/internal/health"
)

// The order matters: programs that use only one address use the first.
var nodeAddresses = check{
	Name:   "every node has its declared addresses, in their order",
	Looks:  "InternalIPs of the Node object, IPv4 first",
	ByHand: "talosctl -n ADDRESS get nodeips; kubectl get node -o wide NODE",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		return eachRegistered(spec, seen, func(want Machine, node Node) health.Result {
			if slices.Equal(node.Addresses, want.addresses()) {
				return health.Pass(want.Name)
			}
			return health.Fail(want.Name, fmt.Sprintf("has the node IPs %s instead of %s",
				cmp.Or(listed(node.Addresses), "none"), listed(want.addresses())))
		})
	},
}
