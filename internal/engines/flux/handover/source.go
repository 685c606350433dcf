package handover

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/health"
)

var sourceFetched = check{
	Name:   "the source has fetched a revision",
	Looks:  "the GitRepository, OCIRepository or Bucket is Ready, has the declared URL and reference, is not suspended, and has a revision",
	ByHand: "kubectl -n flux-system describe gitrepository,ocirepository,bucket",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		return judgeOne(seen.sources(spec), spec.SourceKind, spec.Namespace, spec.Source, func(source Object) health.Result {
			result := objectReady(source)
			switch {
			case source.Suspended:
				return source.failSuspended()
			case spec.URL != "" && source.URL != spec.URL:
				return source.fail(fmt.Sprintf("follows %s instead of %s", source.URL, spec.URL))
			case spec.Ref != "" && fullRef(spec, source.Ref) != fullRef(spec, spec.Ref):
				return source.fail(fmt.Sprintf("follows %s instead of %s", cmp.Or(source.Ref, "no reference"), spec.Ref))
			case result.Verdict == health.Passed && source.Revision == "":
				return source.fail("has fetched nothing yet")
			case source.Current && source.Ready == "Unknown" && source.Reason == progressing && slices.Contains(seen.Fetched, source.Revision):
				return health.Pass(source.title()) // it fetches a newer one
			}
			return result
		})
	},
}

// fullRef returns the full reference of a branch name. Tags and names of buckets are as they are.
func fullRef(spec *Spec, ref string) string {
	if spec.SourceKind != GitRepository || ref == "" || strings.HasPrefix(ref, "refs/") {
		return ref
	}
	return "refs/heads/" + ref
}
