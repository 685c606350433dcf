package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/stacks/steps"
)

// Step is a part of the chain.
type Step struct {
	Name    string `json:"name"`
	Changes bool   `json:"changes"`
}

// steps returns the chain, in which the steps are marked that change.
func (r *StackReport) steps() []Step {
	differs := r.declaredAnew
	if r.Resources.Compared {
		differs = func(component string) bool { return r.Resources.roots[component] }
	}
	var all []Step
	for _, step := range steps.Chain() {
		changes := slices.ContainsFunc(step.Components, differs)
		if len(step.Components) == 0 {
			changes = r.Tree.len() > 0
		}
		all = append(all, Step{step.Title, changes})
	}
	if !slices.ContainsFunc(all, func(step Step) bool { return step.Changes }) {
		return nil
	}
	return all
}

// declaredAnew reports whether a component's declaration changes: the section of the stack file with its name, or what is listed here. It
// is for programs that were not compared.
func (r *StackReport) declaredAnew(component string) bool {
	section := func(name string) bool {
		return slices.ContainsFunc(r.Keys, func(change Change) bool { return strings.HasPrefix(change.Path+".", name+".") })
	}
	switch component {
	case steps.Machines:
		// Other versions and extensions of Talos are the machines' even if no configuration names them.
		return len(r.Machines)+len(r.Configurations) > 0 || section("talos") || section("kubernetes")
	case steps.CRDs:
		return len(r.CRDs) > 0
	case steps.Cilium:
		return slices.ContainsFunc(r.Charts, func(chart ChartChange) bool { return chart.Name == cilium })
	case steps.Gate, steps.Workers:
		return r.declaredAnew(steps.Machines) || r.declaredAnew(steps.Cilium)
	case steps.Core:
		return slices.ContainsFunc(r.Charts, func(chart ChartChange) bool { return chart.service })
	case steps.GitOps:
		return len(r.Settings) > 0 || section(component)
	}
	return section(component)
}

// mermaid draws the chain. All words in it are the program's own.
func mermaid(steps []Step) string {
	var nodes, order []string
	for i, step := range steps {
		id := fmt.Sprintf("s%d", i)
		order = append(order, id)
		node := fmt.Sprintf("  %s[\"%s\"]", id, step.Name)
		if step.Changes {
			node = fmt.Sprintf("  %s[\"%s<br>changes\"]:::changes", id, step.Name)
		}
		nodes = append(nodes, node)
	}
	return "```mermaid\nflowchart LR\n" + strings.Join(nodes, "\n") + "\n  " + strings.Join(order, " --> ") +
		"\n  classDef changes fill:#fff3bf,stroke:#e67700,color:#000\n```\n"
}
