package gate

import (
	"strings"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
)

// Talos starts kubelets and API servers of another declared version once it has pulled their images.
var kubernetesVersion = check{
	Name:   "every kubelet and API server has the declared Kubernetes version",
	Looks:  "the kubelet's version in the Node object, and `/version` at each control plane's own address",
	ByHand: "kubectl get node -o wide NODE; kubectl --server https://ADDRESS:6443 version",
	Judge: withVersions(func(spec *Spec, seen *Cluster) []health.Result {
		return eachRegistered(spec, seen, func(want Machine, node Node) health.Result {
			var problems []string
			differs := func(what, runs string) {
				if runs != spec.Versions.Kubernetes {
					problems = append(problems, what+" runs "+runs)
				}
			}
			differs("kubelet", node.Kubelet)
			if want.Role == cluster.ControlPlane {
				switch api, asked := seen.APIServers[want.Name]; {
				case !asked:
					return health.NotSeen(want.Name, "the API server's version")
				case api.Err != nil:
					return health.Unreadable(want.Name, "the API server's version at "+want.Address.String(), api.Err)
				default:
					differs("API server", api.Runs)
				}
			}
			if len(problems) == 0 {
				return health.Pass(want.Name)
			}
			return health.Fail(want.Name, strings.Join(problems, ", ")+"; "+spec.Versions.Kubernetes+" is declared, and Talos starts it "+
				"when it has the image; or upgrade all nodes: talosctl -n "+spec.controlPlanes()[0].Address.String()+" upgrade-k8s --to "+
				strings.TrimPrefix(spec.Versions.Kubernetes, "v")).Asks(want.log("kubelet"))
		})
	}),
}
