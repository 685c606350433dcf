package handover

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/slipway-platform/slipway/internal/health"
)

var sourceFetched = check{
	Name:   "the Git source has fetched a revision",
	Looks:  "the GitRepository is Ready, has the declared URL and reference, is not suspended, and has a revision",
	ByHand: "kubectl -n flux-system describe gitrepository flux-system",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		return judgeOne(seen.GitSources, "GitRepository", spec.Namespace, spec.Source, func(source Object) health.Result {
			result := objectReady(source)
			switch {
			case source.Suspended:
				return source.fail("is suspended; resume it")
			case spec.URL != "" && source.URL != spec.URL:
				return source.fail(fmt.Sprintf("follows %s instead of %s", source.URL, spec.URL))
			case spec.Ref != "" && fullRef(source.Ref) != fullRef(spec.Ref):
				return source.fail(fmt.Sprintf("follows %s instead of %s", cmp.Or(source.Ref, "no reference"), spec.Ref))
			case result.Verdict == health.Passed && source.Revision == "":
				return source.fail("has fetched nothing yet")
			}
			return result
		})
	},
}

// fullRef returns the full reference of a branch name.
func fullRef(ref string) string {
	if ref == "" || strings.HasPrefix(ref, "refs/") {
		return ref
	}
	return "refs/heads/" + ref
}
