package gate

import (
	"strings"

	"github.com/slipway-platform/slipway/internal/health"
)

// KernelParameters are what Talos has not set of the kernel parameters in a node's machine configuration.
type KernelParameters struct {
	Err   *health.Broken
	Unset []string // names, such as net.core.somaxconn, or sys.module.nvme_core.parameters.io_timeout
}

// Talos tries a parameter again and again that the kernel refuses, and says so only in its log. That closes no gate: the kernel takes some
// parameters only once a pod has loaded a module.
var kernelParameters = check{
	Name: "the kernel of every machine has taken its parameters",
	Looks: "what Talos has set of `talos.sysctls`, and of `machine.sysctls` and `machine.sysfs` of patches; a parameter that the kernel " +
		"does not have, or whose value it refuses, is listed, and the gate opens all the same",
	ByHand: "talosctl -n ADDRESS get kernelparams; talosctl -n ADDRESS logs controller-runtime",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		return eachTalos(spec.Nodes, seen, func(node Machine, talos TalosNode) health.Result {
			switch parameters := talos.Parameters; {
			case parameters == nil:
				return health.NotSeen(node.Name, "the kernel parameters")
			case parameters.Err != nil:
				return health.Skip(node.Name, "they cannot be read: "+parameters.Err.Reason)
			case len(parameters.Unset) > 0:
				return health.Skip(node.Name, "the kernel has not taken "+strings.Join(parameters.Unset, ", ")).
					WithCommand("talosctl -n " + node.Address.String() + " logs controller-runtime")
			}
			return health.Pass(node.Name)
		})
	},
}
