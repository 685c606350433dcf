package removal

import (
	"fmt"
	"maps"
	"slices"

	"github.com/slipway-platform/slipway/internal/engines"
)

// view is what exists of Argo CD's kinds.
type view map[key]object

// sorted returns the objects that make others: ApplicationSets and Applications.
func (v view) sorted() []object {
	return slices.DeleteFunc(engines.Sorted(v), func(o object) bool { return o.Kind == appProject })
}

// projects returns the AppProjects with finalizers.
func (v view) projects() []object {
	return slices.DeleteFunc(engines.Sorted(v), func(o object) bool { return o.Kind != appProject || len(o.finalizers) == 0 })
}

// free returns those of some objects that nothing makes again, because their owners are gone.
func (v view) free(of []object) []object {
	return slices.DeleteFunc(slices.Clone(of), func(o object) bool {
		owner, exists := v[o.owner]
		// Kubernetes deletes the Applications of an ApplicationSet that is deleted without this finalizer. They must be let go before.
		return exists && !(owner.Kind == applicationSet && owner.deleting && !slices.Contains(owner.finalizers, orphanFinalizer))
	})
}

// plan is what a run with Spec.Delete knows of the objects that it has seen. It keeps that when they, or their owners, are gone.
type plan struct {
	root   key
	doomed map[key]bool   // they go with everything that they have applied
	stays  map[key]string // what they have applied stays, and why
}

func newPlan(root key) *plan {
	return &plan{root, map[key]bool{root: true}, map[key]string{}}
}

// learn follows a view from the root down. It returns what is newly known to stay, and why.
func (p *plan) learn(v view) (news []string) {
	for next := slices.Collect(maps.Keys(p.doomed)); len(next) > 0; next = next[1:] {
		for _, o := range v.sorted() {
			if o.owner != next[0] || p.doomed[o.key] || p.stays[o.key] != "" {
				continue
			}
			if why := keptBy(v[o.owner], o.key.String(), o.annotations); why != "" {
				p.stays[o.key] = why
				news = append(news, fmt.Sprintf("what %s has applied: %s", o.key, why))
				continue
			}
			p.doomed[o.key] = true
			next = append(next, o.key)
		}
	}
	slices.Sort(news)
	return news
}

// left returns what must be gone before the rest is let go: what is below the root, and any other Application that is being deleted with
// what it has applied.
func (p *plan) left(v view) []object {
	return slices.DeleteFunc(v.sorted(), func(o object) bool {
		other := o.deleting && o.Kind == application && cascades(o.finalizers) && p.stays[o.key] == ""
		return !p.doomed[o.key] && !other
	})
}
