package handover

import (
	"slices"

	"github.com/slipway-platform/slipway/internal/health"
)

// The tree is everything that the root has applied, what these objects have applied, and so on.
var treeReady = check{
	Name: "everything Flux applies from the root is Ready",
	Looks: "all Kustomizations, ResourceSets, HelmReleases and sources that the root applies, directly or through another Kustomization or " +
		"ResourceSet",
	ByHand: "kubectl get kustomizations,resourcesets,helmreleases,gitrepositories,helmrepositories,ocirepositories,buckets -A",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		root, found := find(seen.Kustomizations, spec.Namespace, spec.Kustomization)
		switch {
		case !found && seen.Kustomizations.Err != nil:
			return []health.Result{health.Block("", "the root Kustomization cannot be read")}
		case !found && !seen.Kustomizations.Synced:
			return []health.Result{health.NotSeen("", "the root's objects")}
		case !found:
			return []health.Result{health.Block("", "there is no root Kustomization")}
		}
		source := seen.source(spec)
		var results []health.Result
		exists, appliers := map[string]bool{}, slices.Concat(seen.Kustomizations.Items, seen.ResourceSets.Items)
		for _, collection := range []health.Seen[Object]{
			seen.Kustomizations, seen.ResourceSets, seen.HelmReleases, seen.GitSources, seen.OtherSources,
		} {
			if result, missing := collection.Unread("", "Flux's objects"); missing {
				return []health.Result{result}
			}
			for _, object := range collection.Items {
				exists[object.title()] = true
				if object.title() == root.title() || !descends(object, root.key(), appliers) {
					continue
				}
				results = append(results, seen.treeResult(spec, object, source))
			}
		}
		for _, title := range root.Inventory {
			if !exists[title] {
				results = append(results, health.Fail(title, "is in the root's inventory and does not exist"))
			}
		}
		if len(results) == 0 {
			result := health.Pass("")
			result.Reason = "the root applies no other Flux objects"
			return []health.Result{result}
		}
		return results
	},
}

// treeResult judges an object that the root has applied, directly or not.
func (seen *Cluster) treeResult(spec *Spec, object, source Object) health.Result {
	result := objectReady(object)
	sameSource := object.Kind == "Kustomization" && object.Source == source.title()
	switch {
	case object.Suspended: // by whoever declared the tree, or by hand: the report lists it
		return result
	case sameSource && seen.moves(spec, object):
		return health.Pass(object.title())
	case result.Verdict == health.Passed && sameSource && !seen.fetched(spec, object.Revision):
		return object.failRevision(source)
	case result.Verdict == health.Failed && object.Reason == dependencyNotReady && object.Kind != ResourceSet: // which waits for any kind
		return seen.waiting(object, result)
	}
	return seen.explain(object, result)
}

// descends reports whether the chain of owners of an object ends at the root.
func descends(object Object, root string, appliers []Object) bool {
	owner := object.Owner
	for range len(appliers) + 1 { // owners may form a circle
		if owner == root {
			return true
		}
		next := ""
		for _, one := range appliers {
			if one.asOwner() == owner {
				next = one.Owner
			}
		}
		if next == "" {
			return false
		}
		owner = next
	}
	return false
}
