package picture

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/gen/xslices"
)

// Update is an update of a stack, and what is known beside the engine's events.
type Update struct {
	Run     *Run   // required
	State   *State // nil: dependencies are not known, so that there is no critical path
	Spans   []Span // work outside of Slipway; nil: not known
	Cluster Cluster
}

// runView is the part of the page that shows an update.
type runView struct {
	Overview  []groupView // the groups without their rows, and the work outside
	Split     *splitView
	Path      []hopView
	PathTook  string
	Groups    []groupView
	Ends      string // the time at the right end of the bars
	Unchanged int
}

// splitView is how the time of an update splits.
type splitView struct {
	Outside, Own, Whole  string
	OutsideShare, OwnPct string
	Works                []workView
}

// workView is work outside of one kind.
type workView struct {
	What, Busy string
	Says       string // how often, and the longest, in words
}

// groupView is a component of the chain with its resources.
type groupView struct {
	ID, Title, Kind string
	From, Took      string
	Count           string
	Broken          string // what did not succeed, in words; "" if everything did
	Bars            []bar
	Rows            []rowView
	Unchanged       []rowView
}

// rowView is a resource.
type rowView struct {
	ID, URN, Name, Type string
	Did                 string // what was done, in words
	State               state
	Critical            bool
	From, Took          string
	Bars                []bar
}

// hopView is a resource of the critical path.
type hopView struct {
	ID, Name, Group string
	From, Took      string
	Says            string // the time before it, and the machines' share, in words; "" if negligible
	Bars            []bar
}

// Write writes the page.
func (u Update) Write(w io.Writer) error {
	if u.State != nil {
		u.State.refine(u.Run)
	}
	return pageTemplate.Execute(w, u.page())
}

func (u Update) page() page {
	run := u.Run
	stack, project := names(run)
	path := criticalPath(run, u.State)
	groups := u.groups(path)
	p := page{Title: fmt.Sprintf("%s, stack %s", project, stack), State: u.outcome()}
	p.Lead = u.lead(p.State)
	p.Facts = append(p.Facts, fact{"Began", clock(run.Began)}, fact{"Took", took(run.Ended.Sub(run.Began))}, fact{"Resources", counts(run)})
	p.Failures, p.Others = u.failures()
	p.Nodes, p.Mesh = u.Cluster.nodes(), u.Cluster.mesh()
	for i, report := range u.Cluster.Found {
		p.Gates = append(p.Gates, newGateView(i, report, run))
	}
	p.Run = &runView{Groups: groups, Overview: u.overview(groups), Ends: took(run.Ended.Sub(run.Began))}
	if len(u.Spans) > 0 {
		p.Run.Split = u.split()
	}
	p.Run.Path = u.hops(path, groups)
	if n := len(path); n > 0 {
		p.Run.PathTook = took(path[n-1].To().Sub(run.Began))
		p.Facts = append(p.Facts, fact{"Critical path", fmt.Sprintf("%d resources, %s", n, p.Run.PathTook)})
	}
	if split := p.Run.Split; split != nil {
		p.Facts = append(p.Facts, fact{"Machines at work", split.Outside + ", " + split.OutsideShare})
	}
	p.Notes = u.notes()
	return p
}

// names are those of the stack and of the project, from a URN: urn:pulumi:STACK::PROJECT::TYPE::NAME.
func names(run *Run) (stack, project string) {
	parts := strings.Split(run.Resources[0].URN, "::")
	if len(parts) < 4 {
		return "unknown", "Update"
	}
	return parts[0][strings.LastIndex(parts[0], ":")+1:], parts[1]
}

func (u Update) outcome() state {
	switch {
	case u.Run.Failed:
		return bad
	case !u.Run.Complete:
		return unknown
	}
	return good
}

func (u Update) lead(s state) string {
	what := "The update"
	if u.Run.Preview {
		what = "The preview"
	}
	end := map[state]string{good: "succeeded", bad: "failed", unknown: "did not end in this log"}[s]
	return fmt.Sprintf("%s %s after %s.", what, end, took(u.Run.Ended.Sub(u.Run.Began)))
}

// done are the engine's operations in words; those of a replacement are one.
var done = map[string]string{
	"create": "created", "update": "updated", "delete": "deleted", "read": "read", "refresh": "refreshed", "import": "imported",
	"replace": "replaced", "create-replacement": "replaced", "delete-replaced": "replaced", "read-replacement": "replaced",
	"import-replacement": "replaced", "discard": "forgotten", "discard-replaced": "replaced", "remove-pending-replace": "replaced",
	"diff": "compared", "extend-parameterize": "prepared",
}

// did is what was done to a resource, in words.
func did(r *Resource) string {
	var words []string
	for _, step := range r.Steps {
		if word := cmp.Or(done[step.Op], step.Op); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, ", ")
}

// undone is the first operation of some kind, with the engine's name for it.
func (r *Resource) undone(is func(Step) bool) string {
	return r.Steps[slices.IndexFunc(r.Steps, is)].Op
}

// counts are how many resources were created, updated and so on.
func counts(run *Run) string {
	n := map[string]int{}
	for _, r := range run.Resources {
		switch {
		case len(r.Steps) == 0:
			n["unchanged"]++
		case r.Failed():
			n["failed"]++
		case r.Unfinished():
			n["not finished"]++
		default:
			n[did(r)]++
		}
	}
	texts := xslices.Map(slices.Sorted(maps.Keys(n)), func(what string) string { return fmt.Sprintf("%d %s", n[what], what) })
	return strings.Join(texts, ", ")
}

// failures are the resources that failed, did not end, or have an error, and those with other messages. An error of an update that
// succeeded is no failure: Some mean nothing, such as Pulumi's "exited prematurely" of a plugin that it has ended.
func (u Update) failures() (failures, others []failure) {
	succeeded := u.outcome() == good
	add := func(f failure, messages []Message, broken bool) {
		for _, m := range messages {
			f.Messages = append(f.Messages, m.Lines)
		}
		switch {
		case broken || !succeeded && slices.ContainsFunc(messages, func(m Message) bool { return m.Error }):
			f.Broken = true
			failures = append(failures, f)
		case len(messages) > 0:
			others = append(others, f)
		}
	}
	// The cause comes first: the stack, whose error only says that something has failed, is the first resource.
	order := make([]int, len(u.Run.Resources))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return u.Run.Resources[a].rank() - u.Run.Resources[b].rank() })
	for _, i := range order {
		r := u.Run.Resources[i]
		broken := r.Failed() || r.Unfinished()
		f := failure{Name: r.Name, Type: r.Type, Link: rowID(i)}
		if broken {
			f.Said = r.Said
		}
		if r.Unfinished() {
			f.Type += ", not finished when the log ends"
		}
		add(f, r.Messages, broken)
	}
	add(failure{Name: "The update"}, u.Run.Messages, false)
	return failures, others
}

func rowID(i int) string { return fmt.Sprintf("r%d", i+1) }

// groups are the resources by component of the chain, in the order of their begin.
func (u Update) groups(path []hop) []groupView {
	critical := map[string]bool{}
	for _, h := range path {
		critical[h.URN] = true
	}
	byURN := xslices.ToMap(u.Run.Resources, func(r *Resource) (string, *Resource) { return r.URN, r })
	whole := scale{u.Run.Began, u.Run.Ended}
	members, tops := map[string][]int{}, []string(nil)
	for i, r := range u.Run.Resources {
		top := topOf(r, byURN)
		if members[top] == nil {
			tops = append(tops, top)
		}
		members[top] = append(members[top], i)
	}
	var groups []groupView
	for n, top := range tops {
		group := groupView{ID: fmt.Sprintf("g%d", n+1), Title: "Stack and providers"}
		if r := byURN[top]; r != nil {
			group.Title, group.Kind = r.Type[strings.LastIndex(r.Type, ":")+1:], r.Name
		}
		var spans []Span
		for _, i := range members[top] {
			r := u.Run.Resources[i]
			row := rowView{ID: rowID(i), URN: r.URN, Name: r.Name, Type: r.Type, Critical: critical[r.URN]}
			if len(r.Steps) == 0 {
				group.Unchanged = append(group.Unchanged, row)
				continue
			}
			row.fill(r, u.Run, whole)
			group.Rows = append(group.Rows, row)
			if r.Failed() || r.Unfinished() {
				group.Broken = row.Name + " " + row.Did
			}
			if !r.Component {
				spans = append(spans, Span{From: r.From(), To: r.To()})
			}
		}
		group.Count = fmt.Sprint(len(group.Rows) + len(group.Unchanged))
		if len(spans) > 0 {
			first, last := ends(spans)
			group.From, group.Took = took(first.Sub(u.Run.Began)), took(last.Sub(first))
			class := "work"
			if group.Broken != "" {
				class = "failed"
			}
			group.Bars = append(group.Bars, whole.bar(first, last, class))
		}
		groups = append(groups, group)
	}
	return groups
}

// ends are the first begin and the last end of spans.
func ends(spans []Span) (first, last time.Time) {
	first = slices.MinFunc(spans, func(a, b Span) int { return a.From.Compare(b.From) }).From
	return first, slices.MaxFunc(spans, func(a, b Span) int { return a.To.Compare(b.To) }).To
}

// topOf returns the URN of the component of the chain that a resource belongs to; "" if it belongs to none.
func topOf(r *Resource, byURN map[string]*Resource) string {
	for range 100 { // a cycle of parents is no valid log
		parent := byURN[r.Parent]
		if parent == nil || parent.Type == stackType {
			break
		}
		r = parent
	}
	if !r.Component || r.Type == stackType {
		return ""
	}
	return r.URN
}

// fill sets what was done to the resource and when.
func (row *rowView) fill(r *Resource, run *Run, whole scale) {
	row.Did, row.State = did(r), good
	class := "work"
	if row.Critical {
		class = "critical"
	}
	switch {
	case r.Failed():
		row.Did, row.State, class = r.undone(func(s Step) bool { return s.Failed })+" failed", bad, "failed"
	case r.Unfinished():
		row.Did, row.State, class = r.undone(func(s Step) bool { return !s.Ended })+" did not end", unknown, "failed"
	}
	row.From = took(r.From().Sub(run.Began))
	if r.Component {
		row.Did += ", component"
		return
	}
	var sum time.Duration
	for _, step := range r.Steps {
		sum += step.To.Sub(step.From)
		row.Bars = append(row.Bars, whole.bar(step.From, step.To, class))
	}
	row.Took = took(sum)
}

// overview is a line for each group, and one for the work outside.
func (u Update) overview(groups []groupView) []groupView {
	lines := slices.DeleteFunc(slices.Clone(groups), func(g groupView) bool { return g.Took == "" })
	for i := range lines {
		lines[i].Rows, lines[i].Unchanged = nil, nil
	}
	parts := union(clip(u.Spans, u.Run.Began, u.Run.Ended))
	if len(parts) == 0 {
		return lines
	}
	first, _ := ends(parts)
	machines := groupView{
		Title: "Machines at work", From: took(first.Sub(u.Run.Began)), Took: took(covered(parts, u.Run.Began, u.Run.Ended)),
	}
	for _, part := range parts {
		machines.Bars = append(machines.Bars, scale{u.Run.Began, u.Run.Ended}.bar(part.From, part.To, "machine"))
	}
	return append(lines, machines)
}

// split tells the work outside from the rest of the update's time.
func (u Update) split() *splitView {
	run := u.Run
	spans := clip(u.Spans, run.Began, run.Ended)
	whole := run.Ended.Sub(run.Began)
	outside := covered(spans, run.Began, run.Ended)
	split := &splitView{
		Outside: took(outside), Own: took(whole - outside), Whole: took(whole),
		OutsideShare: share(outside, whole), OwnPct: share(whole-outside, whole),
	}
	for _, w := range works(spans) {
		split.Works = append(split.Works, workView{
			What: w.What, Busy: took(w.Busy),
			Says: fmt.Sprintf("%d ×; the longest took %s: %s", w.Times, took(w.Longest.To.Sub(w.Longest.From)), w.Longest.Of),
		})
	}
	return split
}

// worthAWord is the least time that the critical path speaks of.
const worthAWord = 100 * time.Millisecond

// hops are the resources of the critical path.
func (u Update) hops(path []hop, groups []groupView) []hopView {
	group, id := map[string]string{}, map[string]string{}
	for _, g := range groups {
		for _, row := range g.Rows {
			group[row.URN], id[row.URN] = g.Title, row.ID
		}
	}
	var hops []hopView
	whole := scale{u.Run.Began, u.Run.Ended}
	for i, h := range path {
		from, to := h.From(), h.To()
		var says []string
		if gap := took(h.Gap); h.Gap >= worthAWord {
			says = append(says, gap+map[bool]string{true: " after the start", false: " after the one before"}[i == 0])
		}
		if busy := covered(u.Spans, from, to); busy >= worthAWord {
			says = append(says, "machines worked for "+took(busy)+" of it")
		}
		hops = append(hops, hopView{
			ID: id[h.URN], Name: h.Name, Group: group[h.URN], From: took(from.Sub(u.Run.Began)), Took: took(to.Sub(from)),
			Says: strings.Join(says, "; "), Bars: []bar{whole.bar(from, to, "critical")},
		})
	}
	return hops
}

// notes say what the page does not know.
func (u Update) notes() []string {
	notes := []string{"Pulumi's events have whole seconds. A begin may be up to a second later than it is shown here; what depends on it " +
		"accordingly."}
	if u.State == nil {
		notes = append(notes, "The critical path, the gates and the nodes are missing, because the state was not given: pulumi stack export.")
	}
	if u.State != nil && u.Cluster.Gate == nil {
		notes = append(notes, "The nodes are missing, because the stack has no outputs yet: it has them after its first successful update.")
	}
	if u.State != nil && (u.Run.Failed || !u.Run.Complete) {
		notes = append(notes, "What failed or did not end may be missing in the state. Then the critical path ends before it.")
	}
	if u.Run.Cut {
		notes = append(notes, "The last line of the event log is not complete.")
	}
	if !u.Run.Complete {
		notes = append(notes, "The event log has no summary: the update was killed, or has not ended yet.")
	}
	if len(u.Spans) > 0 {
		notes = append(notes, "While machines work, Slipway may work, too; what is left is the time in which no machine did.")
	}
	return notes
}

// Decode decodes the JSON in an output of a stack; nil if there is none, or in another form, e.g. of an older version.
func Decode[T any](text string) *T {
	value := new(T)
	if text == "" || json.Unmarshal([]byte(text), value) != nil {
		return nil
	}
	return value
}
