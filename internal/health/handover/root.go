package handover

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/slipway-platform/slipway/internal/health"
)

var rootApplied = check{
	Name:   "the root Kustomization has applied the fetched revision",
	Looks:  "the Kustomization is Ready, has the declared path, is not suspended, and has applied the source's revision",
	ByHand: "kubectl -n flux-system describe kustomization flux-system",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		return judgeOne(seen.Kustomizations, "Kustomization", spec.Namespace, spec.Kustomization, func(root Object) health.Result {
			source := seen.source(spec)
			result := objectReady(root)
			switch {
			case root.Suspended:
				return root.fail("is suspended; resume it")
			case spec.Path != "" && cleanPath(root.Path) != cleanPath(spec.Path):
				return root.fail(fmt.Sprintf("applies %s instead of %s", root.Path, spec.Path))
			case result.Verdict == health.Passed && (root.Revision == "" || root.Revision != source.Revision):
				return root.failRevision(source)
			}
			return result
		})
	},
}

// failRevision is the result for a Kustomization that has applied another revision than its source has fetched.
func (o Object) failRevision(source Object) health.Result {
	return o.fail(fmt.Sprintf("has applied %s, the source has fetched %s", cmp.Or(o.Revision, "nothing"), cmp.Or(source.Revision, "nothing")))
}

func cleanPath(p string) string { return strings.TrimPrefix(path.Clean("/"+p), "/") }
