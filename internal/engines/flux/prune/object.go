package prune

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/cluster/secrecy"
	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/engines"
	"github.com/slipway-platform/slipway/internal/health"
)

// applier is a kind of object from which Flux applies other objects, and removes them again when it is deleted.
type applier struct {
	engines.Kind
	labels string            // what it applies has the labels LABELS/name and LABELS/namespace
	stay   map[string]string // label or annotation of an object that it does not remove
}

// Resources of the appliers.
var (
	setResource           = schema.GroupVersionResource{Group: "fluxcd.controlplane.io", Version: "v1", Resource: "resourcesets"}
	kustomizationResource = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
	releaseResource       = schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"}
)

var appliers = []applier{
	{
		engines.Kind{Name: "ResourceSet", Resource: setResource},
		"resourceset.fluxcd.controlplane.io", map[string]string{"fluxcd.controlplane.io/prune": "disabled"},
	},
	{
		engines.Kind{Name: kustomization, Resource: kustomizationResource},
		"kustomize.toolkit.fluxcd.io", map[string]string{
			"kustomize.toolkit.fluxcd.io/prune": "disabled", "kustomize.toolkit.fluxcd.io/reconcile": "disabled",
			"kustomize.toolkit.fluxcd.io/ssa": "ignore",
		},
	},
	{
		engines.Kind{Name: "HelmRelease", Resource: releaseResource},
		"helm.toolkit.fluxcd.io", map[string]string{"helm.sh/resource-policy": "keep"},
	},
}

const kustomization = "Kustomization"

// key identifies an object.
type key = engines.Key

// object is an object of one of the appliers' kinds.
type object struct {
	key
	owner     key    // the applier that has applied it; zero without one
	stays     string // label or annotation with which its owner does not remove it
	deleting  bool
	suspended bool
	keeps     string // why it keeps its objects on purpose, although it is not suspended; "" if it removes them
	empty     bool   // it has no record of its objects, and so removes nothing
	ready     string // the Ready condition in words
}

func newObject(kind string, u *unstructured.Unstructured) object {
	o := object{key: engines.KeyOf(kind, u), deleting: u.GetDeletionTimestamp() != nil, ready: readiness(u)}
	labels, annotations := u.GetLabels(), u.GetAnnotations()
	for _, owner := range appliers {
		if name := labels[owner.labels+"/name"]; name != "" && o.owner == (key{}) {
			o.owner = key{Kind: owner.Name, Namespace: labels[owner.labels+"/namespace"], Name: name}
			for _, mark := range slices.Sorted(maps.Keys(owner.stay)) {
				if value := owner.stay[mark]; strings.EqualFold(labels[mark], value) || strings.EqualFold(annotations[mark], value) {
					o.stays = mark + ": " + value
				}
			}
		}
	}
	o.suspended, _, _ = unstructured.NestedBool(u.Object, "spec", "suspend")
	entries, _, _ := unstructured.NestedSlice(u.Object, "status", "inventory", "entries")
	switch kind {
	case "ResourceSet":
		o.empty, o.suspended = len(entries) == 0, strings.EqualFold(annotations[reconcileAnnotation], disabled)
	case kustomization:
		o.empty = len(entries) == 0
		policy, _, _ := unstructured.NestedString(u.Object, "spec", "deletionPolicy")
		prune, _, _ := unstructured.NestedBool(u.Object, "spec", "prune")
		switch policy {
		case "Delete", "WaitForTermination":
		case "", "MirrorPrune":
			if !prune {
				o.keeps = "spec.prune: false"
			}
		default:
			o.keeps = "spec.deletionPolicy: " + policy
		}
	}
	return o
}

// readiness returns the Ready condition of an object in words.
func readiness(u *unstructured.Unstructured) string {
	ready := kubeapi.ConditionOf(u.Object, "Ready")
	plain := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	return health.NotReady(ready.Status, plain(ready.Reason), secrecy.Line(plain(ready.Message)))
}

// State says what an object that is still there does.
func (o object) State() string {
	if o.deleting {
		return "is being deleted; " + o.ready
	}
	return "is not being deleted yet; " + o.ready
}

// view is what exists of the appliers' kinds.
type view map[key]object

// below returns the objects that are removed with the root, and the objects that are marked to stay. Objects that either of these leaves
// are in neither list.
func (v view) below(root key) (removed, kept []object) {
	seen := map[key]bool{root: true}
	for next := []key{root}; len(next) > 0; next = next[1:] {
		owner, exists := v[next[0]]
		if exists && owner.keeps != "" && next[0] != root { // what it has applied stays
			continue
		}
		for _, o := range engines.Sorted(v) {
			switch {
			case o.owner != next[0] || seen[o.key]:
			case o.stays != "":
				kept = append(kept, o)
			default:
				seen[o.key] = true
				removed, next = append(removed, o), append(next, o.key)
			}
		}
	}
	return removed, kept
}

// staying returns what is not removed with the root, and why.
func (v view) staying(root key) []string {
	removed, kept := v.below(root)
	var texts []string
	for _, o := range kept {
		texts = append(texts, fmt.Sprintf("%s: has %s", o.key, o.stays))
	}
	for _, o := range removed {
		if o.keeps != "" {
			texts = append(texts, fmt.Sprintf("what %s has applied: that has %s", o.key, o.keeps))
		}
	}
	return texts
}

// left returns what must be gone before Flux is uninstalled: the root, all below it, and every other object that is being deleted, because
// Flux has not removed yet what this object has applied.
func (v view) left(root key) []object {
	removed, _ := v.below(root)
	left := map[key]bool{}
	for _, o := range removed {
		left[o.key] = true
	}
	return slices.DeleteFunc(engines.Sorted(v), func(o object) bool { return o.key != root && !left[o.key] && !o.deleting })
}

// obstacles returns why Flux would not remove everything below the root, each with its remedy.
func (v view) obstacles(root key) []error {
	var problems []error
	removed, _ := v.below(root)
	top, exists := v[root]
	if exists {
		removed = append([]object{top}, removed...)
	}
	if exists && top.keeps != "" {
		problems = append(problems, fmt.Errorf("%s: has %s, with which Flux removes nothing; take that back: %s", root, top.keeps,
			root.Command("patch", `--type=merge -p '{"spec":{"prune":true,"deletionPolicy":null}}'`)))
	}
	for _, o := range removed {
		applied := v.appliedBy(o.key)
		_, owned := v[o.owner]
		switch {
		case o.suspended && o.Kind == "ResourceSet":
			problems = append(problems, fmt.Errorf("%s: is suspended, and would leave what it has applied; resume it, in Git if it is suspended "+
				"there: %s", o.key, o.Command("annotate", reconcileAnnotation+"-")))
		case o.suspended:
			problems = append(problems, fmt.Errorf("%s: is suspended, and would leave what it has applied; resume it, in Git if it is suspended "+
				"there: %s", o.key, o.Command("patch", `--type=merge -p '{"spec":{"suspend":false}}'`)))
		case o.empty && o.keeps == "" && !o.deleting && len(applied) > 0:
			problems = append(problems, fmt.Errorf("%s: has no inventory yet, and would leave what it has applied, such as %s; wait until it is "+
				"Ready: %s", o.key, applied[0].key, waitCommand(o.key)))
		case o.key != root && !owned && !o.deleting:
			problems = append(problems, fmt.Errorf("%s: was applied by %s, which does not exist, so that nothing would remove it; flux-operator "+
				"makes that again; wait until it is Ready: %s", o.key, o.owner, waitCommand(o.owner)))
		}
	}
	return problems
}

func waitCommand(k key) string {
	return fmt.Sprintf("kubectl -n %s wait %s/%s --for=condition=Ready --timeout=5m", k.Namespace, strings.ToLower(k.Kind), k.Name)
}

// appliedBy returns the objects that an object has applied and would remove.
func (v view) appliedBy(owner key) []object {
	return slices.DeleteFunc(engines.Sorted(v), func(o object) bool {
		return o.owner != owner || o.key == owner || o.stays != "" || o.deleting
	})
}
