package mocks

// After reports whether a can only be created once b exists: whether a path of dependencies, explicit providers, DeletedWith and
// parents leads from a to b. A parent counts, because a child is registered after its parent, and a component with DependsOn or
// inputs is registered after those exist.
func (r *Recorder) After(a, b Registration) bool {
	byURN := map[string]Registration{}
	for _, reg := range r.Resources() {
		byURN[reg.URN] = reg
	}
	seen := map[string]bool{}
	var reaches func(urn string) bool
	reaches = func(urn string) bool {
		if urn == b.URN {
			return true
		}
		reg, ok := byURN[urn]
		if !ok || seen[urn] {
			return false
		}
		seen[urn] = true
		for _, next := range reg.edges() {
			if reaches(next) {
				return true
			}
		}
		return false
	}
	for _, next := range a.edges() {
		if reaches(next) {
			return true
		}
	}
	return false
}

// edges returns the URNs that must exist before this resource is registered.
func (r Registration) edges() []string {
	edges := append([]string{r.Parent, r.DeletedWith, r.ProviderURN()}, r.Dependencies...)
	for _, deps := range r.PropertyDependencies {
		edges = append(edges, deps...)
	}
	return edges
}
