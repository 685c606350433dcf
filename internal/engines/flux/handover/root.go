package handover

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/slipway-platform/slipway/internal/health"
)

var rootApplied = check{
	Name: "the root Kustomization has applied the fetched revision",
	Looks: "the Kustomization is Ready, has the declared path, is not suspended, " +
		"and has applied a revision that the source has, or had since the wait began",
	ByHand: "kubectl -n flux-system describe kustomization flux-system",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		return judgeOne(seen.Kustomizations, "Kustomization", spec.Namespace, spec.Kustomization, func(root Object) health.Result {
			source := seen.source(spec)
			result := objectReady(root)
			switch {
			case root.Suspended:
				return root.failSuspended()
			case spec.Path != "" && cleanPath(root.Path) != cleanPath(spec.Path):
				return root.fail(fmt.Sprintf("applies %s instead of %s", root.Path, spec.Path))
			case seen.moves(spec, root):
				return health.Pass(root.title())
			case result.Verdict == health.Passed && !seen.fetched(spec, root.Revision):
				return root.failRevision(source)
			}
			return seen.explain(root, result)
		})
	},
}

// failRevision is the result for a Kustomization that has applied another revision than its source has fetched.
func (o Object) failRevision(source Object) health.Result {
	return o.fail(fmt.Sprintf("has applied %s, the source has fetched %s", cmp.Or(o.Revision, "nothing"), cmp.Or(source.Revision, "nothing")))
}

func cleanPath(p string) string { return strings.TrimPrefix(path.Clean("/"+p), "/") }
