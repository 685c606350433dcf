package report

import (
	"fmt"
	"slices"
	"strings"
)

// Step is a part of the chain.
type Step struct {
	Name    string `json:"name"`
	Changes bool   `json:"changes"`

	roots []string                // names of the components that the program registers for it
	model func(*StackReport) bool // whether it changes, where the programs were not compared
}

// chain lists the steps in their order. The names of the components are those of package stacks.
func chain() []Step {
	network := func(r *StackReport) bool {
		return slices.ContainsFunc(r.Charts, func(chart ChartChange) bool { return chart.Name == cilium })
	}
	services := func(r *StackReport) bool {
		return slices.ContainsFunc(r.Charts, func(chart ChartChange) bool { return chart.service })
	}
	keys := func(sections ...string) func(*StackReport) bool {
		return func(r *StackReport) bool {
			return slices.ContainsFunc(r.Keys, func(change Change) bool {
				section, _, _ := strings.Cut(change.Path, ".")
				return slices.Contains(sections, section)
			})
		}
	}
	// Other versions and extensions of Talos are the machines' even if no configuration names them.
	machines := func(r *StackReport) bool {
		return len(r.Machines)+len(r.Configurations) > 0 || keys("talos", "kubernetes")(r)
	}
	return []Step{
		{Name: "machines", roots: []string{"talos", "machines"}, model: machines},
		{Name: "CRDs", roots: []string{"crds"}, model: func(r *StackReport) bool { return len(r.CRDs) > 0 }},
		{Name: "Cilium", roots: []string{"cilium"}, model: network},
		{Name: "gate", roots: []string{"gate", "workers"},
			model: func(r *StackReport) bool { return machines(r) || network(r) }},
		{Name: "core services", roots: []string{"core"}, model: services},
		{Name: "secrets", roots: []string{"secrets"}, model: keys("secrets")},
		{Name: "handover", roots: []string{"gitops"}, model: func(r *StackReport) bool { return len(r.Settings) > 0 || keys("gitops")(r) }},
		{Name: "storage gate", roots: []string{"storage"}, model: keys("storage")},
		{Name: "mesh gate", roots: []string{"mesh"}, model: keys("mesh")},
		{Name: "Flux", model: func(r *StackReport) bool { return r.Tree.len() > 0 }},
	}
}

// steps returns the chain, in which the steps are marked that change.
func (r *StackReport) steps(before, after *Stack) []Step {
	all := chain()
	for i, step := range all {
		switch {
		case len(step.roots) > 0 && r.Resources.Compared:
			all[i].Changes = slices.ContainsFunc(step.roots, func(root string) bool { return r.Resources.roots[root] })
		default:
			all[i].Changes = step.model(r)
		}
	}
	if !slices.ContainsFunc(all, func(step Step) bool { return step.Changes }) {
		return nil
	}
	return all
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
