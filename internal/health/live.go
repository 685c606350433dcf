package health

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Live draws what a wait waits for on a terminal, again and again in the same place: a line for each condition with a mark for each node,
// and below them what is missing. The last state stays on the screen.
type Live struct {
	To     io.Writer                   // the terminal
	Size   func() (columns, lines int) // of the terminal; it may change
	Title  string                      // what is looked at, such as "gate of infra"
	Colour bool

	drawn   []string      // lines of the frame on the screen
	at      time.Duration // when it was drawn
	results []Result
	left    time.Duration // until the timeout, when the last heartbeat came
	beat    time.Duration // when it came
}

// LiveHeartbeat is the time between two calls of Heartbeat that a Live needs, so that its clock goes on while nothing changes.
const LiveHeartbeat = time.Second

// frameTime is the shortest time between two frames: with many nodes, the results change by the hundred.
const frameTime = 100 * time.Millisecond

// Seen draws the results, unless a frame was drawn just before. The next call or heartbeat draws them then.
func (l *Live) Seen(waited time.Duration, results []Result) {
	l.results = results
	if l.drawn == nil || waited-l.at >= frameTime {
		l.draw(waited)
	}
}

// Heartbeat draws the newest results.
func (l *Live) Heartbeat(waited, left time.Duration, results []Result) {
	l.results, l.left, l.beat = results, left, waited
	l.draw(waited)
}

// End draws how the wait ended.
func (l *Live) End(end End) {
	l.results, l.left = end.Results, 0
	l.draw(end.Waited)
}

// Control sequences. Between begin and end, a terminal that knows how shows the whole frame at once, and no line wraps.
const (
	beginFrame = "\x1b[?2026h\x1b[?7l"
	endFrame   = "\x1b[?7h\x1b[?2026l"
	clearRest  = "\x1b[K" // of the line
	clearBelow = "\x1b[J"
)

// draw replaces the frame on the screen. Only the lines that fit are drawn, because the cursor cannot reach what has scrolled away.
func (l *Live) draw(waited time.Duration) {
	columns, lines := l.Size()
	columns, lines = max(columns, 20), max(lines, 4)
	width := columns - 1 // behind the last column, a terminal clears the last character
	frame := l.frame(waited, width)
	if len(frame) >= lines {
		more := len(frame) - (lines - 2)
		frame = append(frame[:lines-2:lines-2], fmt.Sprintf("… %d more lines", more))
	}
	var text strings.Builder
	text.WriteString(beginFrame + "\r")
	if up := l.rows(columns); up > 0 {
		fmt.Fprintf(&text, "\x1b[%dA", min(up, lines-1))
	}
	for i, line := range frame {
		frame[i] = cut(line, width)
		text.WriteString(l.coloured(frame[i]) + clearRest + "\n")
	}
	text.WriteString(clearBelow + endFrame)
	_, _ = io.WriteString(l.To, text.String())
	l.drawn, l.at = frame, waited
}

// rows returns how many rows the drawn frame takes at this width: a terminal that became narrower has wrapped its lines.
func (l *Live) rows(columns int) int {
	rows := 0
	for _, line := range l.drawn {
		rows += max(1, (len([]rune(line))+columns-1)/columns)
	}
	return rows
}

func cut(line string, columns int) string {
	if runes := []rune(line); len(runes) > columns {
		return string(runes[:columns-1]) + "…"
	}
	return line
}

// frame returns the lines of a frame.
func (l *Live) frame(waited time.Duration, columns int) []string {
	all := groups(l.results)
	open := slices.DeleteFunc(slices.Clone(all), func(g group) bool { return g.holds() })
	head := fmt.Sprintf("%s: %s, %d of %d conditions hold", l.Title, waited.Round(time.Second), len(all)-len(open), len(all))
	if l.left > 0 {
		head += fmt.Sprintf(", %s left", max(0, l.left-(waited-l.beat)).Round(time.Second))
	}
	lines := []string{head}
	nodes := subjectsOfSeveral(all)
	titles, width := shortNames(nodes), 0
	for _, title := range titles {
		width = max(width, len(title)+1)
	}
	const name = 34 // columns that a condition's name gets at least
	switch {
	case len(nodes) == 0:
	case name+width*len(nodes) <= columns:
		lines = append(lines, strings.Repeat(" ", columns-width*len(nodes))+row(titles, width))
	case name+len(nodes) <= columns:
		width = 1 // the marks alone, in the order of the nodes
		lines = append(lines, fmt.Sprintf("  (%d nodes, %s to %s)", len(nodes), nodes[0], nodes[len(nodes)-1]))
	default:
		nodes, width = nil, 0
	}
	for _, g := range all {
		text := mark(g.worst()) + " " + g.check + g.counted(nodes)
		if len(nodes) > 0 {
			space := columns - width*len(nodes)
			text = cut(text, space-1)
			text += strings.Repeat(" ", space-len([]rune(text))) + row(g.marks(nodes), width)
		}
		lines = append(lines, strings.TrimRight(text, " "))
	}
	for _, g := range open {
		var failed []Result
		for _, result := range g.results {
			if result.Verdict == Failed && !result.Unseen {
				failed = append(failed, result)
			}
		}
		for _, same := range alike(failed) {
			lines = append(lines, "  "+subjects(same)+same[0].Check+": "+strings.ReplaceAll(same[0].Reason, "\n", " "))
		}
	}
	return lines
}

// row writes cells of the same width, each at the right.
func row(cells []string, width int) string {
	var text strings.Builder
	for _, cell := range cells {
		text.WriteString(strings.Repeat(" ", max(0, width-len([]rune(cell)))) + cell)
	}
	return text.String()
}

// subjectsOfSeveral returns the subjects that several checks have, the shorter names first: the nodes.
func subjectsOfSeveral(all []group) []string {
	checks := map[string]int{}
	for _, g := range all {
		for _, result := range g.results {
			if result.Subject != "" && !result.remarked() {
				checks[result.Subject]++
			}
		}
	}
	var found []string
	for subject, count := range checks {
		if count > 1 {
			found = append(found, subject)
		}
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) }) // node-2 before node-10
	return found
}

// shortNames returns names without what all begin with, up to a hyphen or a dot.
func shortNames(names []string) []string {
	if len(names) < 2 {
		return names
	}
	first := names[0]
	shared := strings.LastIndexAny(first, "-./") + 1
	for _, name := range names {
		for shared > 0 && !strings.HasPrefix(name, first[:shared]) {
			shared = strings.LastIndexAny(first[:shared-1], "-./") + 1
		}
	}
	var short []string
	for _, name := range names {
		short = append(short, name[shared:])
	}
	return short
}

// holds reports whether nothing of the check is missing.
func (g group) holds() bool { return Hold(g.results) }

// worst returns the result that the mark of the whole check stands for.
func (g group) worst() Result {
	worst := g.results[0]
	for _, result := range g.results {
		if rank(result) > rank(worst) {
			worst = result
		}
	}
	return worst
}

// rank orders results: what failed counts more than what waits for another, and that more than what holds.
func rank(r Result) int {
	switch {
	case r.Verdict == Failed && !r.Unseen:
		return 3
	case r.Blocked, r.Verdict == Failed:
		return 2
	case r.Verdict == Passed:
		return 1
	}
	return 0
}

// mark returns one character for a result.
func mark(r Result) string { return []string{"-", "✓", "·", "✗"}[rank(r)] }

// marks returns a mark for each node; a blank for a node that the check does not judge.
func (g group) marks(nodes []string) []string {
	of := map[string]string{}
	for _, result := range g.results {
		of[result.Subject] = mark(result)
	}
	var all []string
	for _, node := range nodes {
		if of[node] == "" {
			of[node] = " "
		}
		all = append(all, of[node])
	}
	return all
}

// counted says how many subjects of a check pass, if its line does not show all of them.
func (g group) counted(nodes []string) string {
	passed, judged, shown := 0, 0, true
	for _, result := range g.results {
		if result.remarked() {
			continue
		}
		judged++
		if result.Verdict == Passed {
			passed++
		}
		shown = shown && slices.Contains(nodes, result.Subject)
	}
	if shown || judged < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d)", passed, judged)
}

var coloured = strings.NewReplacer("✓", "\x1b[32m✓\x1b[0m", "✗", "\x1b[1;31m✗\x1b[0m", "·", "\x1b[33m·\x1b[0m")

func (l *Live) coloured(line string) string {
	if !l.Colour {
		return line
	}
	return coloured.Replace(line)
}
