package health

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/gen/xslices"
)

// Live draws the state of a wait on a terminal, again and again in the same place: a line for each condition with a mark for each node,
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

// LiveHeartbeat is the time between two calls of Heartbeat, by which a Live's clock goes on while nothing changes.
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
	rows := 0 // that the drawn frame takes: a terminal that became narrower has wrapped its lines
	for _, line := range l.drawn {
		rows += max(1, (len([]rune(line))+columns-1)/columns)
	}
	var text strings.Builder
	text.WriteString(beginFrame + "\r")
	if rows > 0 {
		fmt.Fprintf(&text, "\x1b[%dA", min(rows, lines-1))
	}
	for i, line := range frame {
		frame[i] = cut(line, width)
		line = frame[i]
		if l.Colour {
			line = coloured.Replace(line)
		}
		text.WriteString(line + clearRest + "\n")
	}
	text.WriteString(clearBelow + endFrame)
	_, _ = io.WriteString(l.To, text.String())
	l.drawn, l.at = frame, waited
}

var coloured = strings.NewReplacer("✓", "\x1b[32m✓\x1b[0m", "✗", "\x1b[1;31m✗\x1b[0m", "·", "\x1b[33m·\x1b[0m")

func cut(line string, columns int) string {
	if runes := []rune(line); len(runes) > columns {
		return string(runes[:columns-1]) + "…"
	}
	return line
}

// frame returns the lines of a frame: a head, the nodes, a line for each check, and what is missing.
func (l *Live) frame(waited time.Duration, columns int) []string {
	all := groups(l.results)
	open := slices.DeleteFunc(slices.Clone(all), func(g group) bool { return Hold(g.results) })
	head := fmt.Sprintf("%s: %s, %d of %d conditions hold", l.Title, waited.Round(time.Second), len(all)-len(open), len(all))
	if l.left > 0 {
		head += fmt.Sprintf(", %s left", max(0, l.left-(waited-l.beat)).Round(time.Second))
	}
	lines := []string{head}
	nodes, width, titles := nodeColumns(all, columns)
	if len(nodes) > 0 {
		lines = append(lines, titles)
	}
	for _, g := range all {
		text := mark(g.worst()) + " " + g.check + g.counted(nodes)
		if len(nodes) > 0 {
			space := columns - width*len(nodes)
			text = fmt.Sprintf("%-*s%s", space, cut(text, space-1), g.marks(nodes, width))
		}
		lines = append(lines, strings.TrimRight(text, " "))
	}
	for _, g := range open {
		failed := slices.DeleteFunc(slices.Clone(g.results), func(r Result) bool { return r.Verdict != Failed || r.Unseen })
		for _, same := range alike(failed) {
			lines = append(lines, "  "+subjects(same)+same[0].Check+": "+strings.ReplaceAll(same[0].Reason, "\n", " "))
		}
	}
	return lines
}

// nodeColumns returns the nodes that get a column, the width of a column, and the line above the columns: short names, or for many nodes
// the first and the last. Without enough space there are none.
func nodeColumns(all []group, columns int) (nodes []string, width int, titles string) {
	const name = 34 // columns that a condition's name gets at least
	nodes = subjectsOfSeveral(all)
	short := shortNames(nodes)
	for _, title := range short {
		width = max(width, len(title)+1)
	}
	switch {
	case name+width*len(nodes) <= columns:
		titles = strings.Repeat(" ", columns-width*len(nodes))
		for _, title := range short {
			titles += fmt.Sprintf("%*s", width, title)
		}
		return nodes, width, titles
	case name+len(nodes) <= columns:
		return nodes, 1, fmt.Sprintf("  (%d nodes, %s to %s)", len(nodes), nodes[0], nodes[len(nodes)-1])
	}
	return nil, 0, ""
}

// subjectsOfSeveral returns the subjects that several checks have, the shorter names first: the nodes.
func subjectsOfSeveral(all []group) (found []string) {
	checks := map[string]int{}
	for _, g := range all {
		for _, result := range g.results {
			if result.Subject == "" || result.remarked() {
				continue
			}
			if checks[result.Subject]++; checks[result.Subject] == 2 {
				found = append(found, result.Subject)
			}
		}
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) }) // node-2 before node-10
	return found
}

// shortNames returns names without what all begin with, up to a hyphen, a dot or a slash.
func shortNames(names []string) []string {
	if len(names) < 2 {
		return names
	}
	shared := names[0]
	for _, name := range names {
		for !strings.HasPrefix(name, shared) {
			shared = shared[:len(shared)-1]
		}
	}
	shared = shared[:strings.LastIndexAny(shared, "-./")+1]
	return xslices.Map(names, func(name string) string { return strings.TrimPrefix(name, shared) })
}

// mark returns one character for a result.
func mark(r Result) string { return []string{"-", "✓", "·", "·", "✗"}[r.rank()] }

// marks returns a mark for each node; a blank for a node that the check does not judge.
func (g group) marks(nodes []string, width int) (row string) {
	of := xslices.ToMap(g.results, func(r Result) (string, string) { return r.Subject, mark(r) })
	for _, node := range nodes {
		row += fmt.Sprintf("%*s", width, of[node])
	}
	return row
}

// counted says how many subjects of a check pass, if the columns of the nodes do not show all of them.
func (g group) counted(nodes []string) string {
	shown := !slices.ContainsFunc(g.results, func(r Result) bool { return !r.remarked() && !slices.Contains(nodes, r.Subject) })
	passed, judged := g.counts()
	if shown || judged < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d)", passed, judged)
}
