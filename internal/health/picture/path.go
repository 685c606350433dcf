package picture

import (
	"slices"
	"time"
)

// hop is a resource on the critical path, and the time between the end of the resource before and its own start.
type hop struct {
	*Resource
	Gap time.Duration
}

// criticalPath returns the resources that determined the time of the run, in their order: the resource that ended last, before it its
// dependency that ended last, and so on. A resource whose creation failed is not in the state, so its dependencies are unknown: the path
// ends before it. Without a state there is none.
func criticalPath(run *Run, state *State) []hop {
	if state == nil {
		return nil
	}
	did := map[string]*Resource{}
	var last *Resource
	for _, r := range run.Resources {
		if r.Component || len(r.Steps) == 0 {
			continue
		}
		did[r.URN] = r
		if _, known := state.dependencies[r.URN]; known && later(r, last) {
			last = r
		}
	}
	var path []hop
	for seen := map[string]bool{}; last != nil; {
		seen[last.URN] = true
		var before *Resource
		for _, urn := range state.dependencies[last.URN] {
			if r := did[urn]; r != nil && !seen[urn] && later(r, before) {
				before = r
			}
		}
		since := run.Began
		if before != nil {
			since = before.To()
		}
		path = append(path, hop{Resource: last, Gap: max(0, last.From().Sub(since))})
		last = before
	}
	slices.Reverse(path)
	return path
}

// later reports whether a resource ended after another one. Within a second, the order of the events tells.
func later(a, b *Resource) bool {
	switch {
	case b == nil:
		return true
	case !a.To().Equal(b.To()):
		return a.To().After(b.To())
	}
	return a.order > b.order
}
