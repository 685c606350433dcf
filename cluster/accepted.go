package cluster

import (
	"slices"
	"strings"
)

// Acceptance is a warning that does not matter for this cluster: neither `config-check` nor the program prints it.
type Acceptance struct {
	// Path with which the warning begins.
	Path string `json:"path" config:"required" form:"sentence" example:"storage.role"`
	// Part of the warning's text, such as a file or a name. Without it, all warnings of the path are accepted, those to come, too.
	Of string `json:"of" form:"sentence" example:"the Secret demo-token"`
	// Why the warning does not matter here.
	Reason string `json:"reason" config:"required" form:"sentence" example:"our own tree gives the OSDs tolerations"`
}

// matches reports whether a warning is accepted.
func (a Acceptance) matches(warning *Problem) bool {
	return a.Path == warning.Path && strings.Contains(warning.Problem, a.Of)
}

// Unaccepted returns the advice that the stack file does not accept.
func (c *Cluster) Unaccepted(advice Problems) Problems {
	return slices.DeleteFunc(slices.Clone(advice), func(one *Problem) bool {
		return slices.ContainsFunc(c.Accepted, func(accepted Acceptance) bool { return accepted.matches(one) })
	})
}

// UnusedAcceptances returns advice about what the stack file accepts although nothing in the advice, which is all there is, is so.
func (c *Cluster) UnusedAcceptances(advice Problems) (unused Problems) {
	for i, accepted := range c.Accepted {
		if slices.ContainsFunc(advice, accepted.matches) {
			continue
		}
		at := ItemPath("accepted", i)
		if accepted.Of == "" {
			unused = append(unused, NewProblem(at+".path", "remove the entry", "%s has no warning", accepted.Path))
		} else {
			unused = append(unused, NewProblem(at+".of", "correct it, or remove the entry", "%s is in no warning of %s", accepted.Of, accepted.Path))
		}
	}
	return unused
}
