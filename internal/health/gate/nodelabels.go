package gate

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/health"
)

// Talos sets the labels soon after the node has registered. It does not overwrite a value that somebody else has set, and on a worker the
// API server refuses the whole update if it contains anything that a kubelet may not change.
var nodeLabels = check{
	Name:   "every node has its declared labels",
	Looks:  "the labels of the Node object; others that it has are not judged",
	ByHand: "kubectl get node NODE --show-labels; talosctl -n ADDRESS logs controller-runtime",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		return eachRegistered(spec, seen, func(want Machine, node Node) health.Result {
			var lacks, set []string
			for _, key := range slices.Sorted(maps.Keys(want.Labels)) {
				label := key + "=" + want.Labels[key]
				switch value, has := node.Labels[key]; {
				case !has:
					lacks, set = append(lacks, label), append(set, label)
				case value != want.Labels[key]:
					lacks, set = append(lacks, label+" (it has the value "+cmp.Or(value, `""`)+")"), append(set, label)
				}
			}
			if len(lacks) == 0 {
				return health.Pass(want.Name)
			}
			return health.Fail(want.Name, "lacks the declared "+plural("label", lacks)+"; Talos sets labels, see its log; or set by hand: "+
				"kubectl label node "+want.Name+" --overwrite "+strings.Join(set, " ")).
				WithCommand("talosctl -n ADDRESS logs controller-runtime; kubectl get node NODE --show-labels")
		})
	},
}

// plural returns a noun and a list.
func plural(noun string, list []string) string {
	if len(list) > 1 {
		noun += "s"
	}
	return noun + " " + strings.Join(list, ", ")
}
