package gate

import (
	"net/netip"
	"strings"

	"github.com/slipway-platform/slipway/internal/health"
)

// ControllerRanges are the ranges that a control plane's Talos configures the controller manager with.
type ControllerRanges struct {
	Err                    *health.Broken
	PodCIDRs, ServiceCIDRs []netip.Prefix
}

var talosRanges = check{
	Name:   "Talos configures Kubernetes with the declared pod and service ranges",
	Looks:  "the controller manager's configuration on each control plane",
	ByHand: "talosctl -n ADDRESS get controllermanagerconfigs -o yaml",
	Judge: withNetwork(func(spec *Spec, seen *Cluster) []health.Result {
		return eachTalos(spec.controlPlanes(), seen, func(node Machine, talos TalosNode) health.Result {
			result := health.Pass(node.Name)
			switch used := talos.Ranges; {
			case used == nil:
				result = health.NotSeen(node.Name, "the controller manager's configuration")
			case used.Err != nil && used.Err.Unknown:
				result = health.Skip(node.Name, "this Talos version does not show it: "+used.Err.Reason)
			case used.Err != nil:
				result = health.Unreadable(node.Name, "the controller manager's configuration", used.Err)
			default:
				problems := append(rangesDiffer("pods", used.PodCIDRs, spec.Network.PodCIDRs),
					rangesDiffer("services", used.ServiceCIDRs, spec.Network.ServiceCIDRs)...)
				if len(problems) > 0 {
					result = health.Fail(node.Name, "gives "+strings.Join(problems, "; ")).ForGood()
				}
			}
			return result
		})
	}),
}
