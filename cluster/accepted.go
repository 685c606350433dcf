package cluster

import "slices"

// Acceptance is a warning that does not matter for this cluster: neither `config-check` nor the program prints it.
type Acceptance struct {
	// Path with which the warning begins. All warnings of that path are accepted.
	Path string `json:"path" config:"required" form:"sentence" example:"storage.role"`
	// Why the warning does not matter here.
	Reason string `json:"reason" config:"required" form:"sentence" example:"our own tree gives the OSDs tolerations"`
}

// Unaccepted returns the advice that the stack file does not accept.
func (c *Cluster) Unaccepted(advice Problems) Problems {
	return slices.DeleteFunc(slices.Clone(advice), func(one *Problem) bool {
		return slices.ContainsFunc(c.Accepted, func(accepted Acceptance) bool { return accepted.Path == one.Path })
	})
}

// UnusedAcceptances returns advice about what the stack file accepts although nothing in the advice, which is all there is, has that path.
func (c *Cluster) UnusedAcceptances(advice Problems) (unused Problems) {
	for i, accepted := range c.Accepted {
		if !slices.ContainsFunc(advice, func(one *Problem) bool { return one.Path == accepted.Path }) {
			unused = append(unused, NewProblem(ItemPath("accepted", i)+".path", "remove the entry", "%s has no warning", accepted.Path))
		}
	}
	return unused
}
