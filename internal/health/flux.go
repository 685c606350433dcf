package health

import (
	"fmt"
	"path"
	"strings"
)

// Flux is what has been seen of Flux in a cluster, as the checks read it.
type Flux struct {
	Instances      Seen[FluxObject] // FluxInstances
	GitSources     Seen[FluxObject] // GitRepositories
	OtherSources   Seen[FluxObject] // HelmRepositories and OCIRepositories
	Kustomizations Seen[FluxObject]
	HelmReleases   Seen[FluxObject]
}

// FluxObject is any object of Flux.
type FluxObject struct {
	Kind, Namespace, Name string
	Owner                 string // "namespace/name" of the Kustomization that applied it, "" without
	Suspended             bool
	Current               bool   // the conditions are about the newest spec
	Ready                 string // status of the Ready condition; "" without one
	Reason, Message       string // of the Ready condition
	Revision              string // fetched (sources) or applied (Kustomizations)
	Source                string // "Kind namespace/name" a Kustomization applies from

	URL, Ref  string   // of a GitRepository
	Path      string   // of a Kustomization
	Inventory []string // "Kind namespace/name" of the Flux objects that a Kustomization has applied
}

func (o FluxObject) key() string { return o.Namespace + "/" + o.Name }

func (o FluxObject) title() string { return o.Kind + " " + o.key() }

// HandoverChecks are the checks of a handover, in the order in which Flux comes up.
func HandoverChecks(spec *HandoverSpec) []Check[*Flux] {
	return []Check[*Flux]{instanceReady(spec), sourceFetched(spec), rootApplied(spec), treeReady(spec)}
}

// AppliedRevision is the revision that the root Kustomization has applied, "" before.
func (f *Flux) AppliedRevision(spec *HandoverSpec) string {
	root, _ := find(f.Kustomizations, spec.Namespace, spec.Kustomization)
	return root.Revision
}

func instanceReady(spec *HandoverSpec) Check[*Flux] {
	return Check[*Flux]{Name: "the FluxInstance is Ready", Evaluate: func(seen *Flux) []Result {
		object, result := lookup(seen.Instances, "FluxInstance", spec.Namespace, spec.Instance)
		if object != nil {
			result = objectReady(*object)
		}
		return []Result{result}
	}}
}

func sourceFetched(spec *HandoverSpec) Check[*Flux] {
	return Check[*Flux]{Name: "the Git source has fetched a revision", Evaluate: func(seen *Flux) []Result {
		source, result := lookup(seen.GitSources, "GitRepository", spec.Namespace, spec.Source)
		if source == nil {
			return []Result{result}
		}
		result = objectReady(*source)
		switch {
		case source.Suspended:
			result = stuck(*source, "is suspended; resume it")
		case spec.URL != "" && source.URL != spec.URL:
			result = stuck(*source, fmt.Sprintf("follows %s instead of %s", source.URL, spec.URL))
		case spec.Ref != "" && fullRef(source.Ref) != fullRef(spec.Ref):
			result = stuck(*source, fmt.Sprintf("follows %s instead of %s", or(source.Ref, "no reference"), spec.Ref))
		case result.Verdict == Passed && source.Revision == "":
			result = stuck(*source, "has fetched nothing yet")
		}
		return []Result{result}
	}}
}

func rootApplied(spec *HandoverSpec) Check[*Flux] {
	return Check[*Flux]{Name: "the root Kustomization has applied the fetched revision", Evaluate: func(seen *Flux) []Result {
		root, result := lookup(seen.Kustomizations, "Kustomization", spec.Namespace, spec.Kustomization)
		if root == nil {
			return []Result{result}
		}
		source, _ := find(seen.GitSources, spec.Namespace, spec.Source)
		result = objectReady(*root)
		switch {
		case root.Suspended:
			result = stuck(*root, "is suspended; resume it")
		case spec.Path != "" && cleanPath(root.Path) != cleanPath(spec.Path):
			result = stuck(*root, fmt.Sprintf("applies %s instead of %s", root.Path, spec.Path))
		case result.Verdict == Passed && (root.Revision == "" || root.Revision != source.Revision):
			result = stuck(*root, fmt.Sprintf("has applied %s, the source has fetched %s", or(root.Revision, "nothing"), or(source.Revision, "nothing")))
		}
		return []Result{result}
	}}
}

// The tree is what the root has applied, what that has applied, and so on.
func treeReady(spec *HandoverSpec) Check[*Flux] {
	rootKey := spec.Namespace + "/" + spec.Kustomization
	return Check[*Flux]{Name: "everything Flux applies from the root is Ready", Evaluate: func(seen *Flux) []Result {
		root, known := find(seen.Kustomizations, spec.Namespace, spec.Kustomization)
		if !known {
			return []Result{unseen("", "the root's objects")}
		}
		source, _ := find(seen.GitSources, spec.Namespace, spec.Source)
		var results []Result
		present := map[string]bool{}
		for _, collection := range []Seen[FluxObject]{seen.Kustomizations, seen.HelmReleases, seen.GitSources, seen.OtherSources} {
			if collection.Err != nil {
				return []Result{unreadable("", "Flux's objects", collection.Err)}
			}
			for _, object := range collection.Items {
				present[object.title()] = true
				if object.key() == rootKey && object.Kind == root.Kind || !descends(object, rootKey, seen.Kustomizations.Items) {
					continue
				}
				result := objectReady(object)
				if result.Verdict == Passed && object.Kind == root.Kind && object.Source == source.title() && object.Revision != source.Revision {
					result = stuck(object, fmt.Sprintf("has applied %s, the source has fetched %s", or(object.Revision, "nothing"), source.Revision))
				}
				results = append(results, result)
			}
		}
		for _, title := range root.Inventory {
			if !present[title] {
				results = append(results, failed(title, "is in the root's inventory and does not exist"))
			}
		}
		if len(results) == 0 {
			return []Result{{Verdict: Passed, Reason: "the root applies no other Flux objects"}}
		}
		return results
	}}
}

// descends reports whether the chain of owners of an object ends at the root.
func descends(object FluxObject, rootKey string, kustomizations []FluxObject) bool {
	owner := object.Owner
	for range len(kustomizations) + 1 {
		if owner == rootKey {
			return true
		}
		next := ""
		for _, k := range kustomizations {
			if k.key() == owner {
				next = k.Owner
			}
		}
		if next == "" {
			return false
		}
		owner = next
	}
	return false
}

func find(objects Seen[FluxObject], namespace, name string) (FluxObject, bool) {
	for _, object := range objects.Items {
		if object.Namespace == namespace && object.Name == name {
			return object, true
		}
	}
	return FluxObject{}, false
}

func lookup(objects Seen[FluxObject], kind, namespace, name string) (*FluxObject, Result) {
	subject := kind + " " + namespace + "/" + name
	switch object, found := find(objects, namespace, name); {
	case objects.Err != nil:
		return nil, unreadable(subject, "it", objects.Err)
	case !objects.Synced:
		return nil, unseen(subject, "it")
	case !found:
		result := failed(subject, "does not exist")
		result.Command = fmt.Sprintf("kubectl -n %s get %s,pods", namespace, strings.ToLower(kind))
		return nil, result
	default:
		return &object, Result{}
	}
}

func objectReady(object FluxObject) Result {
	switch {
	case object.Suspended:
		return Result{Subject: object.title(), Verdict: Skipped, Reason: "is suspended"}
	case !object.Current:
		return stuck(object, "has not acted on its newest spec yet")
	case object.Ready == "":
		return stuck(object, "has no Ready condition yet")
	case object.Ready != "True":
		reason := "Ready is " + object.Ready
		for _, part := range []string{object.Reason, object.Message} {
			if part != "" {
				reason += ": " + part
			}
		}
		return stuck(object, reason)
	}
	return passed(object.title())
}

func stuck(object FluxObject, reason string) Result {
	result := failed(object.title(), reason)
	result.Command = fmt.Sprintf("kubectl -n %s describe %s %s", object.Namespace, strings.ToLower(object.Kind), object.Name)
	return result
}

// fullRef makes a branch name the reference it stands for.
func fullRef(ref string) string {
	if ref == "" || strings.HasPrefix(ref, "refs/") {
		return ref
	}
	return "refs/heads/" + ref
}

func cleanPath(p string) string { return strings.TrimPrefix(path.Clean("/"+p), "/") }
