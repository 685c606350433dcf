package report

import (
	"maps"
	"slices"
	"strings"
)

// Report is what would change.
type Report struct {
	Base     string        `json:"base"`
	BaseNote string        `json:"baseNote,omitempty"` // end of a sentence: how the base is related to what was asked for
	Change   string        `json:"change"`
	Stacks   []StackReport `json:"stacks"`
}

// What became of a stack.
const (
	Added     = "added"
	Removed   = "removed"
	Changed   = "changed"
	Unchanged = "unchanged"
	Invalid   = "invalid" // the stack file has problems, so that nothing else can be said
)

// StackReport is what would change in one stack.
type StackReport struct {
	Name     string    `json:"name"`
	State    string    `json:"state"`
	Problems []Problem `json:"problems,omitempty"` // that the change has
	Notes    []string  `json:"notes,omitempty"`    // what could not be compared, and why

	Dangers        []string        `json:"dangers,omitempty"`
	Restarts       []string        `json:"restarts,omitempty"` // sentences, in the order in which they happen
	Keys           []Change        `json:"keys,omitempty"`     // of the loaded configuration
	Machines       []MachineChange `json:"machines,omitempty"`
	Configurations []Difference    `json:"configurations,omitempty"` // of machines with the same lines
	CRDs           []Change        `json:"crds,omitempty"`
	Settings       []Change        `json:"settings,omitempty"`
	Charts         []ChartChange   `json:"charts,omitempty"`
	Tree           Objects         `json:"tree,omitzero"`
	Resources      Resources       `json:"resources,omitzero"`
	Steps          []Step          `json:"steps,omitempty"`
	Existing       *Existing       `json:"existing,omitempty"` // only with the stack's state

	talos   string            // version of the machines when they get their configurations
	effects map[string]effect // of the changed configurations, by the names of the machines
}

// Difference is the lines that differ in something.
type Difference struct {
	Of    []string `json:"of"` // machines or objects that differ in these lines
	Lines []string `json:"lines"`
}

// Objects are Kubernetes objects that differ.
type Objects struct {
	Added   []string     `json:"added,omitempty"`
	Removed []string     `json:"removed,omitempty"`
	Changed []Difference `json:"changed,omitempty"`
}

func (o Objects) len() int { return len(o.Added) + len(o.Removed) + len(o.Changed) }

// ChartChange is a Helm release that differs.
type ChartChange struct {
	Name       string   `json:"name"`
	State      string   `json:"state"`
	Owner      string   `json:"owner,omitempty"`  // who upgrades it: pulumi or flux
	Source     []Change `json:"source,omitempty"` // owner, chart, version and repository
	Values     []string `json:"values,omitempty"` // lines
	Objects    Objects  `json:"objects,omitzero"`
	Unrendered string   `json:"unrendered,omitempty"` // why Objects is empty

	service bool // the release of a core service
}

// Compare returns what would change from base to change.
func Compare(base, change Side) Report {
	report := Report{Base: base.Name, Change: change.Name}
	names := map[string]bool{}
	for _, stack := range slices.Concat(base.Stacks, change.Stacks) {
		names[stack.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		report.Stacks = append(report.Stacks, compareStacks(name, base.Find(name), change.Find(name)))
	}
	return report
}

func compareStacks(name string, before, after *Stack) StackReport {
	r := StackReport{Name: name, State: Changed}
	switch {
	case after == nil:
		r.State, r.Dangers = Removed, []string{"the stack file is removed. Nothing is destroyed by that: the cluster keeps running, " +
			"and nothing declares it any more. To destroy it, run `pulumi destroy` with the stack file that it has now."}
		return r
	case !after.usable():
		r.State, r.Problems = Invalid, after.Problems
		return r
	case before == nil:
		r.State, before = Added, &Stack{}
	case !before.usable():
		r.Notes = append(r.Notes, "the base's stack file cannot be loaded by the program of this change, so that everything shows as new: "+
			before.Problems[0].Text)
		before = &Stack{Salt: before.Salt, Secrets: before.Secrets}
	}
	r.compare(before, after)
	if r.State == Changed && r.isEmpty() {
		r.State = Unchanged
	}
	return r
}

func (r *StackReport) compare(before, after *Stack) {
	r.Problems = slices.Concat(after.Tree.Problems, after.Program.Problems, after.Existing.Problems)
	r.Keys = changes(before.Keys, after.Keys)
	if r.State == Added {
		r.Keys = nil // all of them
	}
	r.CRDs, r.Settings = changes(before.CRDs, after.CRDs), changes(before.Settings, after.Settings)
	r.Resources = compareResources(before.Program, after.Program)
	r.Machines = compareMachines(before, after, r.Resources)
	r.talos = after.Keys["talos.version"]
	r.Configurations, r.effects = compareConfigurations(before, after)
	r.Charts = compareCharts(before, after)
	r.Tree = compareObjects(before.Tree.Objects, after.Tree.Objects)
	r.Existing = compareExisting(before, after)
	r.Restarts = r.restarts(before, after)
	r.Dangers = r.dangers(before, after)
	r.Steps = r.steps()
	if why := after.Program.Unrun; why != "" {
		r.Notes = append(r.Notes, "the program was not run: "+why)
	} else if why := before.Program.Unrun; why != "" {
		r.Notes = append(r.Notes, "the base's program was not run, so that its resources are not compared: "+why)
	} else if failed := before.Program.Problems; len(failed) > 0 {
		r.Notes = append(r.Notes, "the base's program failed, so that its resources are not compared: "+failed[0].Text)
	}
	if why := after.Existing.Unrun; why != "" {
		r.Notes = append(r.Notes, "not compared with the state: "+why)
	}
	r.Notes = append(r.Notes, after.Program.Warnings...)
}

// isEmpty reports whether nothing is different, and nothing is wrong.
func (r *StackReport) isEmpty() bool {
	return len(r.Problems)+len(r.Dangers)+len(r.Keys)+len(r.Machines)+len(r.Configurations)+len(r.CRDs)+len(r.Settings)+len(r.Charts)+
		r.Tree.len()+r.Resources.len()+r.Existing.len() == 0
}

// compareConfigurations returns the lines of the machine configurations that differ, once for all machines with the same lines, and what
// each machine needs for its change. Machines that exist on one side only are left out.
func compareConfigurations(before, after *Stack) (found []Difference, effects map[string]effect) {
	effects = map[string]effect{}
	for _, machine := range after.Machines {
		was := machineOf(before, machine.Name)
		if was == nil {
			continue
		}
		from, to := was.Configuration, machine.Configuration
		if before.Program.Works() && after.Program.Works() {
			from, to = before.configuration(*was), after.configuration(machine)
		}
		found = appendDifference(found, machine.Name, differ(linesOf(from), linesOf(to)))
		effects[machine.Name] = effectOf(after.Keys["talos.version"], machine, from, to)
	}
	return found, effects
}

// configuration returns a machine's configuration as the program shows it, or else as it was rendered without the program.
func (s *Stack) configuration(machine Machine) string {
	for _, resource := range s.Program.Resources {
		if resource.Type == typeConfiguration && strings.HasSuffix(resource.Name, "-"+machine.Name+"-configuration") {
			if text, is := resource.Inputs["configuration"].(string); is {
				return text
			}
		}
	}
	return machine.Configuration
}

// appendDifference adds what differs, together with others that differ in the same lines.
func appendDifference(all []Difference, name string, lines []string) []Difference {
	if len(lines) == 0 {
		return all
	}
	for i := range all {
		if slices.Equal(all[i].Lines, lines) {
			all[i].Of = append(all[i].Of, name)
			return all
		}
	}
	return append(all, Difference{[]string{name}, lines})
}

func compareObjects(before, after map[string]string) Objects {
	var found Objects
	for _, title := range union(before, after) {
		was, had := before[title]
		is, has := after[title]
		switch {
		case !had:
			found.Added = append(found.Added, title)
		case !has:
			found.Removed = append(found.Removed, title)
		default:
			found.Changed = appendDifference(found.Changed, title, differ(linesOf(was), linesOf(is)))
		}
	}
	return found
}

func compareCharts(before, after *Stack) []ChartChange {
	var found []ChartChange
	for _, is := range after.Charts {
		one := ChartChange{Name: is.Name, State: Changed, Owner: after.Owners[is.Name], service: slices.Contains(after.Services, is.Name)}
		was := before.chart(is.Name)
		if was == nil {
			one.State, one.Source = Added, changes(nil, after.source(is))
			found = append(found, one)
			continue
		}
		one.Source, one.Values = changes(before.source(*was), after.source(is)), differ(was.lines(), is.lines())
		if was.Manifests != nil && is.Manifests != nil {
			one.Objects = compareObjects(was.Manifests, is.Manifests)
		} else if one.Unrendered = is.Unrendered; one.Unrendered == "" {
			one.Unrendered = was.Unrendered
		}
		if len(one.Source)+len(one.Values)+one.Objects.len() > 0 {
			found = append(found, one)
		}
	}
	for _, was := range before.Charts {
		if after.chart(was.Name) == nil {
			found = append(found, ChartChange{
				Name: was.Name, State: Removed, Source: changes(before.source(was), nil), service: slices.Contains(before.Services, was.Name),
			})
		}
	}
	return found
}

// chart returns the release of that name, or nil.
func (s *Stack) chart(name string) *Chart {
	return find(s.Charts, func(chart Chart) bool { return chart.Name == name })
}

// lines returns the values as lines.
func (c Chart) lines() []string {
	if len(c.Values) == 0 {
		return nil
	}
	return Lines(plain(c.Values))
}

func (s *Stack) source(c Chart) map[string]string {
	return map[string]string{
		"owner": s.Owners[c.Name], "chart": c.Chart, "version": c.Version, "repository": c.Repository, "namespace": c.Namespace,
	}
}
