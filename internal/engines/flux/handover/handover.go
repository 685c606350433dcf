// Package handover checks that Flux has applied the root Kustomization and everything below it.
package handover

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/kube"
)

type check = health.Check[*Spec, *Cluster]

// Checks are in the order in which Flux comes up.
var Checks = []check{controllersRun, instanceReady, sourceFetched, rootApplied, treeReady}

// Cluster is what was seen of Flux in a cluster. The zero value has seen nothing.
type Cluster struct {
	Instances      health.Seen[Object] // FluxInstances
	GitSources     health.Seen[Object] // GitRepositories
	OtherSources   health.Seen[Object] // HelmRepositories, OCIRepositories and Buckets
	Kustomizations health.Seen[Object]
	HelmReleases   health.Seen[Object]
	ResourceSets   health.Seen[Object]        // of flux-operator
	Workloads      health.Seen[kube.Workload] // of all namespaces
	Pods           health.Seen[kube.Pod]      // of all namespaces

	// Fetched are the revisions that the root's source has had since the wait began, each as it was declared. A push during the wait adds one:
	// an object that has applied any of them has applied the revision at the begin of the wait, or a newer one.
	Fetched []string
}

// Object is any object of Flux.
type Object struct {
	Kind, Namespace, Name string
	Owner                 string // who applied it, as asOwner has it; "" if nobody of Flux has
	Suspended             bool
	Deleting              bool
	Current               bool     // the conditions are about the newest spec, and come after the newest request to reconcile
	Ready                 string   // status of the Ready condition; "" without one
	Reason, Message       string   // of the Ready condition
	Revision              string   // fetched (sources) or applied (Kustomizations)
	Source                string   // "Kind namespace/name" that a Kustomization applies from
	DependsOn             []string // "Kind namespace/name" of what must be Ready first

	URL, Ref  string   // of a source, as Spec has them
	Path      string   // of a Kustomization
	Inventory []string // "Kind namespace/name" of the Flux objects that a Kustomization has applied
	Workloads []string // the same of the workloads that it has applied
}

func (o Object) key() string { return o.Namespace + "/" + o.Name }

func (o Object) title() string { return o.Kind + " " + o.key() }

// Kinds of flux-operator. A ResourceSet applies other objects.
const (
	ResourceSet  = "ResourceSet"
	fluxInstance = "FluxInstance"
)

// asOwner is a Kustomization as "namespace/name", and a ResourceSet with its kind before.
func (o Object) asOwner() string {
	if o.Kind == ResourceSet {
		return o.title()
	}
	return o.key()
}

// AppliedRevision returns the revision that the root Kustomization has applied, "" before.
func (seen *Cluster) AppliedRevision(spec *Spec) string {
	root, _ := find(seen.Kustomizations, spec.Namespace, spec.Kustomization)
	return root.Revision
}

// sources returns the objects among which the root's source is.
func (seen *Cluster) sources(spec *Spec) health.Seen[Object] {
	if spec.SourceKind == GitRepository {
		return seen.GitSources
	}
	all := seen.OtherSources
	all.Items = slices.Clone(all.Items)
	all.Items = slices.DeleteFunc(all.Items, func(o Object) bool { return o.Kind != spec.SourceKind })
	return all
}

// source returns the root's source, the zero Object if it was not seen.
func (seen *Cluster) source(spec *Spec) Object {
	source, _ := find(seen.sources(spec), spec.Namespace, spec.Source)
	return source
}

// Note adds the revision of the root's source to those that were fetched, if the source is as declared.
func (seen *Cluster) Note(spec *Spec) {
	revision := seen.source(spec).Revision
	if slices.Contains(seen.Fetched, revision) || !health.Hold(sourceFetched.Judge(spec, seen)) {
		return
	}
	seen.Fetched = append(seen.Fetched, revision)
}

// fetched reports whether the root's source has the revision, or had it since the wait began.
func (seen *Cluster) fetched(spec *Spec, revision string) bool {
	return revision != "" && (revision == seen.source(spec).Revision || slices.Contains(seen.Fetched, revision))
}

// moves reports whether a Kustomization is applying a newer revision than one that was fetched since the wait began.
func (seen *Cluster) moves(spec *Spec, object Object) bool {
	return object.Current && object.Ready == "Unknown" && object.Reason == progressing && seen.fetched(spec, object.Revision) &&
		object.Revision != seen.source(spec).Revision
}

// progressing is the reason of a Ready condition that is Unknown while a controller of Flux works on the object.
const progressing = "Progressing"

// Evaluate runs all checks.
func Evaluate(spec *Spec, seen *Cluster) []health.Result {
	return health.Evaluate(Checks, spec, seen, nil)
}

// find returns the object of that name.
func find(objects health.Seen[Object], namespace, name string) (Object, bool) {
	return objects.Find(func(o Object) bool { return o.Namespace == namespace && o.Name == name })
}

// judgeOne judges the object of that name. It fails if there is none.
func judgeOne(objects health.Seen[Object], kind, namespace, name string, judge func(Object) health.Result) []health.Result {
	subject := kind + " " + namespace + "/" + name
	if result, missing := objects.Unread(subject, "it"); missing {
		return []health.Result{result}
	}
	object, found := find(objects, namespace, name)
	if !found {
		result := health.Fail(subject, "does not exist")
		result.Command = fmt.Sprintf("kubectl -n %s get %s,pods", namespace, strings.ToLower(kind))
		return []health.Result{result}
	}
	return []health.Result{judge(object)}
}

// objectReady judges the Ready condition of an object.
func objectReady(object Object) health.Result {
	switch {
	case object.Suspended:
		return health.Skip(object.title(), "is suspended")
	case object.Deleting:
		return object.fail(object.deletion())
	case !object.Current:
		return object.fail("has not acted yet on its newest spec or on a request to reconcile")
	case object.Ready != "True":
		return object.fail(health.NotReady(object.Ready, object.Reason, object.Message))
	}
	return health.Pass(object.title())
}

// deletion says that the object is being deleted, and what its controller reports. kustomize-controller reports nothing new in the status:
// its events say what is wrong.
func (o Object) deletion() string {
	if o.Ready == "True" {
		return "is being deleted"
	}
	return "is being deleted; " + health.NotReady(o.Ready, o.Reason, o.Message)
}

// fail is the result for an object that does not meet the condition.
func (o Object) fail(reason string) health.Result {
	return health.FailObject(o.Kind, o.Namespace, o.Name, reason)
}

// failSuspended is the result for an object that must not be suspended.
func (o Object) failSuspended() health.Result {
	result := o.fail("is suspended; resume it")
	result.Command = o.resume()
	return result
}

// resume returns the command that ends a suspension.
func (o Object) resume() string {
	if o.Kind == fluxInstance {
		return fmt.Sprintf("kubectl -n %s annotate %s %s fluxcd.controlplane.io/reconcile-", o.Namespace, strings.ToLower(o.Kind), o.Name)
	}
	return fmt.Sprintf(`kubectl -n %s patch %s %s --type=merge -p '{"spec":{"suspend":false}}'`, o.Namespace, strings.ToLower(o.Kind), o.Name)
}
