package picture

import (
	"slices"
	"time"
)

// hop is a resource on the critical path, and the time that passed before it after the resource ended that it waited for.
type hop struct {
	*Resource
	Gap time.Duration
}

// criticalPath returns the resources that determined how long the run took, the first one first: the resource that ended last, before it
// the one of its dependencies that ended last, and so on. Of a resource that is not in the state, because its creation failed, the
// dependencies are not known: the path ends before it. Without a state there is none.
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
