package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
)

// maxComment is the length of a comment in bytes. GitHub refuses one with more than 65,536 characters.
const maxComment = 60_000

// Marker is the first line of the comment, by which the next run finds it.
const Marker = "<!-- slipway preview -->"

// Markdown writes the report for a comment, with as many lines of each difference as fit.
func (r Report) Markdown() string {
	var text string
	for _, most := range []int{200, 60, 20, 8, 0} {
		if text = r.markdown(most); len(text) <= maxComment {
			return text
		}
	}
	return strings.ToValidUTF8(text[:maxComment], "") + "\n\n… and more: see the JSON file.\n"
}

func (r Report) markdown(most int) string {
	w := &writer{most: most}
	w.line(Marker)
	w.line("## Preview")
	var unchanged []string
	for _, stack := range r.Stacks {
		if stack.State == Unchanged {
			unchanged = append(unchanged, stack.Name)
		}
	}
	if len(unchanged) == len(r.Stacks) {
		w.line("\nNothing changes in %s.", list(unchanged))
	}
	for _, stack := range r.Stacks {
		if len(stack.Dangers) > 0 {
			w.line("\n> [!CAUTION]")
			w.line("> **%s**", escaped(stack.Name))
			for _, danger := range stack.Dangers {
				w.line("> - %s", danger)
			}
		}
	}
	for _, stack := range r.Stacks {
		w.stack(stack)
	}
	if len(unchanged) > 0 && len(unchanged) < len(r.Stacks) {
		w.line("\nNothing changes in %s.", list(unchanged))
	}
	w.notes(r)
	read := "No cluster, no state and no secret was read: what runs may differ from what the base declares."
	if slices.ContainsFunc(r.Stacks, func(stack StackReport) bool { return stack.Existing != nil }) {
		read = "No cluster and no secret was read; the states of its stacks were read: what runs may differ from them, see `make drift`."
	}
	w.line("\n<sub>%s compared with %s%s. %s</sub>", code(r.Change), code(r.Base), r.BaseNote, read)
	return w.text.String()
}

type writer struct {
	text strings.Builder
	most int // lines of one difference
}

func (w *writer) line(format string, args ...any) {
	fmt.Fprintf(&w.text, format+"\n", args...)
}

func (w *writer) stack(r StackReport) {
	switch r.State {
	case Unchanged:
		return
	case Removed:
		w.line("\n### %s: removed", escaped(r.Name))
		return
	case Invalid:
		w.line("\n### %s: does not work", escaped(r.Name))
		w.problems(r.Problems)
		return
	case Added:
		w.line("\n### %s: a new stack", escaped(r.Name))
	default:
		w.line("\n### %s", escaped(r.Name))
	}
	w.problems(r.Problems)
	w.line("\n%s", r.summary())
	if len(r.Restarts) > 0 && r.State != Added {
		w.line("\n**What restarts, in this order**")
		for i, sentence := range r.Restarts {
			w.line("%d. %s", i+1, sentence)
		}
	}
	w.machines(r.Machines)
	w.changes("Configuration, with defaults", r.Keys)
	w.changes("CRDs", r.CRDs)
	w.changes("Cluster settings", r.Settings)
	if r.State != Added {
		w.differences(fmt.Sprintf("Machine configuration of %s", plural(count(r.Configurations), "machine")), r.Configurations)
		w.charts(r.Charts)
	}
	w.objects("What Flux applies", r.Tree, r.State == Added)
	w.resources(r)
	w.existing(r.Existing)
	if len(r.Steps) > 0 && r.State != Added {
		w.details("The chain, with what changes", mermaid(r.Steps))
	}
}

// summary says in one line how much changes.
func (r StackReport) summary() string {
	var parts []string
	number := func(count int, one, several string) {
		switch {
		case count == 1:
			parts = append(parts, "1 "+one)
		case count > 1:
			parts = append(parts, fmt.Sprintf("%d %s", count, several))
		}
	}
	number(len(r.Machines), "machine", "machines")
	number(count(r.Configurations), "machine configuration", "machine configurations")
	number(len(r.Charts), "chart", "charts")
	number(len(r.CRDs), "set of CRDs", "sets of CRDs")
	number(len(r.Settings), "cluster setting", "cluster settings")
	number(r.Tree.len(), "object of Flux", "objects of Flux")
	if r.Resources.Compared {
		parts = append(parts, fmt.Sprintf("resources of Pulumi: %d added, %d removed, %d changed, of %d", len(r.Resources.Added),
			len(r.Resources.Removed), len(r.Resources.Changed), r.Resources.After))
	} else if r.Resources.After > 0 {
		parts = append(parts, fmt.Sprintf("%d resources of Pulumi", r.Resources.After))
	}
	return strings.Join(parts, "; ")
}

func count(differences []Difference) int {
	total := 0
	for _, one := range differences {
		total += len(one.Of)
	}
	return total
}

func (w *writer) problems(problems []Problem) {
	if len(problems) == 0 {
		return
	}
	w.line("\n> [!WARNING]")
	for _, problem := range problems {
		at := ""
		if problem.File != "" {
			at = code(problem.place()) + ": "
		}
		w.line("> - %s%s", at, code(problem.Text))
	}
}

// place returns the file and line of a problem.
func (p Problem) place() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return p.File
}

func (w *writer) machines(machines []MachineChange) {
	if len(machines) == 0 {
		return
	}
	w.line("\n| machine | | |\n| --- | --- | --- |")
	for _, machine := range machines {
		var what []string
		for _, change := range machine.What {
			what = append(what, fmt.Sprintf("%s %s", escaped(change.Path), arrow(change)))
		}
		state := machine.State
		if machine.Reboots {
			state += ", reboots"
		}
		w.line("| %s | %s | %s |", cell(code(machine.Name)), state, cell(strings.Join(what, "<br>")))
	}
}

func (w *writer) changes(title string, changes []Change) {
	if len(changes) == 0 {
		return
	}
	var lines []string
	for _, change := range changes {
		if change.Before != "" {
			lines = append(lines, "- "+change.Path+" = "+change.Before)
		}
		if change.After != "" {
			lines = append(lines, "+ "+change.Path+" = "+change.After)
		}
	}
	w.details(fmt.Sprintf("%s (%d)", title, len(changes)), w.fenced(lines))
}

func (w *writer) differences(title string, differences []Difference) {
	if len(differences) == 0 {
		return
	}
	w.details(title, w.blocks(differences))
}

// blocks writes differences below each other.
func (w *writer) blocks(differences []Difference) string {
	var text strings.Builder
	for i, one := range differences {
		if i == w.most {
			fmt.Fprintf(&text, "… and %d more, in the JSON file\n", len(differences)-i)
			break
		}
		fmt.Fprintf(&text, "%s\n\n%s\n", list(one.Of), w.fenced(one.Lines))
	}
	return text.String()
}

func (w *writer) charts(charts []ChartChange) {
	if len(charts) == 0 {
		return
	}
	var text strings.Builder
	for _, chart := range charts {
		fmt.Fprintf(&text, "%s: %s\n\n", code(chart.Name), chart.State)
		for _, change := range chart.Source {
			fmt.Fprintf(&text, "- %s %s\n", change.Path, arrow(change))
		}
		if len(chart.Values) > 0 {
			fmt.Fprintf(&text, "\nvalues\n\n%s", w.fenced(chart.Values))
		}
		switch {
		case chart.Unrendered != "":
			fmt.Fprintf(&text, "\nThe manifests are not compared: %s.\n", escaped(chart.Unrendered))
		case chart.State == Changed && chart.Objects.len() == 0:
			text.WriteString("\nThe manifests stay the same.\n")
		case chart.State == Changed:
			fmt.Fprintf(&text, "\nmanifests\n\n%s", w.objectsText(chart.Objects))
		}
		text.WriteString("\n")
	}
	w.details(fmt.Sprintf("Charts (%d)", len(charts)), text.String())
}

func (w *writer) objects(title string, objects Objects, brief bool) {
	if objects.len() == 0 {
		return
	}
	title = fmt.Sprintf("%s: %d added, %d removed, %d changed", title, len(objects.Added), len(objects.Removed), len(objects.Changed))
	if brief {
		w.line("\n%s.", title)
		return
	}
	w.details(title, w.objectsText(objects))
}

func (w *writer) objectsText(objects Objects) string {
	lines := slices.Concat(marked("+ ", objects.Added), marked("- ", objects.Removed))
	var text strings.Builder
	if len(lines) > 0 {
		text.WriteString(w.fenced(lines) + "\n")
	}
	return text.String() + w.blocks(objects.Changed)
}

// resources writes the resources that differ, but for those with a section of their own.
func (w *writer) resources(r StackReport) {
	if r.Resources.len() == 0 || r.State == Added {
		return
	}
	lines := slices.Concat(marked("+ ", r.Resources.Added), marked("- ", r.Resources.Removed))
	for _, change := range r.Resources.Changed {
		lines = append(lines, "! "+short(change.Type)+" "+change.Name)
		if !slices.Contains([]string{typeConfiguration, typeRelease}, change.Type) {
			lines = append(lines, indented(change.Lines)...)
		}
	}
	w.details(fmt.Sprintf("Resources of `pulumi preview` (%d of %d)", r.Resources.len(), r.Resources.After), w.fenced(lines))
}

// marked returns titles, each after a mark.
func marked(mark string, titles []string) []string {
	var lines []string
	for _, title := range titles {
		lines = append(lines, mark+title)
	}
	return lines
}

// indented returns the lines of a difference, indented after their marks.
func indented(difference []string) []string {
	var lines []string
	for _, line := range difference {
		lines = append(lines, line[:2]+"    "+line[2:])
	}
	return lines
}

// existing writes what a run would do to what exists.
func (w *writer) existing(e *Existing) {
	if e == nil {
		return
	}
	w.line("\n**On what exists, by the state of %s**: %s.", code(e.Of), e.summary())
	w.operations("What this change does to what exists", e.Operations)
	w.operations("What a run of the base would do, too, because it is not what was brought up last", e.OfBase)
}

func (e *Existing) summary() string {
	var parts []string
	for _, op := range order {
		count := 0
		for _, one := range e.Operations {
			if one.Op == op {
				count++
			}
		}
		if count > 0 {
			parts = append(parts, fmt.Sprintf("%d to %s", count, op))
		}
	}
	if len(parts) == 0 {
		parts = []string{"this change does nothing to it that can be seen"}
	}
	if len(e.OfBase) > 0 {
		parts = append(parts, fmt.Sprintf("%d that a run of the base would touch, too", len(e.OfBase)))
	}
	if len(e.Unknown) > 0 {
		parts = append(parts, fmt.Sprintf("%d for which only a run knows, because it depends on secrets", len(e.Unknown)))
	}
	return strings.Join(append(parts, fmt.Sprintf("%d stay as they are", e.Same)), "; ")
}

func (w *writer) operations(title string, operations []OperationReport) {
	if len(operations) == 0 {
		return
	}
	mark := map[string]string{"create": "+", "delete": "-", "replace": "-", "update": "!", Forget: "!"}
	var lines []string
	for _, one := range operations {
		remark := ""
		switch {
		case one.Protect && mark[one.Op] == "-":
			remark = " (protected)"
		case one.Op == Forget:
			remark = " (it stays)"
		}
		lines = append(lines, fmt.Sprintf("%s %s %s%s", mark[one.Op], one.Op, one.title(), remark))
		if one.Type != typeConfiguration { // it has a section of its own, unless the base has the difference, too
			lines = append(lines, indented(one.Lines)...)
		}
	}
	w.details(fmt.Sprintf("%s (%d)", title, len(operations)), w.fenced(lines))
}

func (w *writer) notes(r Report) {
	var lines []string
	for _, stack := range r.Stacks {
		for _, note := range stack.Notes {
			lines = append(lines, fmt.Sprintf("- %s: %s", code(stack.Name), escaped(note)))
		}
	}
	if len(lines) > 0 {
		w.line("\n**Not compared, and warnings**\n%s", strings.Join(lines, "\n"))
	}
}

// details writes a section that a reader opens.
func (w *writer) details(title, text string) {
	w.line("\n<details><summary>%s</summary>\n\n%s\n</details>", title, strings.TrimSuffix(text, "\n"))
}

// fenced writes lines as a block of code, with a fence that is longer than any in them.
func (w *writer) fenced(lines []string) string {
	const longest = 300
	more := len(lines) - w.most
	if more > 0 {
		lines = lines[:w.most]
	}
	fence := "```"
	var text strings.Builder
	for _, line := range lines {
		line = visible(line)
		for strings.Contains(line, fence) {
			fence += "`"
		}
		if runes := []rune(line); len(runes) > longest {
			line = string(runes[:longest]) + "…"
		}
		text.WriteString(line + "\n")
	}
	if more > 0 {
		fmt.Fprintf(&text, "… %d more lines, in the JSON file\n", more)
	}
	return fence + "diff\n" + text.String() + fence + "\n"
}

// code writes a text from a file so that nothing in it is Markdown, a mention or HTML.
func code(text string) string {
	text = visible(text)
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return fence + text + fence
}

// escaped writes words from a file outside of code.
func escaped(text string) string {
	var out strings.Builder
	for _, char := range visible(text) {
		if strings.ContainsRune("\\`*_{}[]<>()#!|@&~", char) {
			fmt.Fprintf(&out, "&#%d;", char)
		} else {
			out.WriteRune(char)
		}
	}
	return out.String()
}

// visible replaces what is not visible, or would end a line.
func visible(text string) string {
	return strings.Map(func(char rune) rune {
		if !cluster.IsVisible(char) {
			return '·'
		}
		return char
	}, text)
}

// cell writes Markdown in a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

// value writes a value, or that there is none.
func value(text string) string {
	if text == "" {
		return "nothing"
	}
	return code(text)
}

func arrow(change Change) string {
	switch {
	case change.Before == "":
		return code(change.After)
	case change.After == "":
		return "was " + code(change.Before)
	case change.Before == change.After:
		return escaped(change.After)
	}
	return code(change.Before) + " → " + code(change.After)
}
