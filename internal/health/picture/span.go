package picture

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Span is a time in which something outside of Slipway worked that a run may have waited for: a task of the hypervisor, the boot of a
// machine. Whoever knows such times writes a JSON object a line.
type Span struct {
	What string    `json:"what"` // kind of work, e.g. boot
	Of   string    `json:"of"`   // machine, host or file
	From time.Time `json:"from"` // RFC 3339
	To   time.Time `json:"to"`
}

// ReadSpans reads spans, a JSON object a line.
func ReadSpans(lines io.Reader) ([]Span, error) {
	var spans []Span
	scanner, problems := bufio.NewScanner(lines), []error(nil)
	for n := 1; scanner.Scan(); n++ {
		if len(scanner.Bytes()) == 0 {
			continue
		}
		var span Span
		switch err := json.Unmarshal(scanner.Bytes(), &span); {
		case err != nil:
			problems = append(problems, fmt.Errorf("spans: line %d: %w", n, err))
		case span.What == "" || span.From.IsZero() || span.To.Before(span.From):
			problems = append(problems,
				fmt.Errorf(`spans: line %d: write {"what":"boot","of":"infra-cp-1","from":TIME,"to":TIME}, with to not before from`, n))
		default:
			spans = append(spans, span)
		}
	}
	return spans, errors.Join(append(problems, scanner.Err())...)
}

// clip returns the parts of spans that are between two times.
func clip(spans []Span, from, to time.Time) []Span {
	var clipped []Span
	for _, s := range spans {
		if s.From.Before(from) {
			s.From = from
		}
		if s.To.After(to) {
			s.To = to
		}
		if s.To.After(s.From) {
			clipped = append(clipped, s)
		}
	}
	return clipped
}

// union returns the times in which at least one of the spans was, in order and apart from each other.
func union(spans []Span) []Span {
	ordered := slices.SortedFunc(slices.Values(spans), func(a, b Span) int { return a.From.Compare(b.From) })
	var parts []Span
	for _, s := range ordered {
		n := len(parts)
		switch {
		case n == 0 || s.From.After(parts[n-1].To):
			parts = append(parts, Span{From: s.From, To: s.To})
		case s.To.After(parts[n-1].To):
			parts[n-1].To = s.To
		}
	}
	return parts
}

// covered returns how long at least one of the spans was between two times.
func covered(spans []Span, from, to time.Time) time.Duration {
	var sum time.Duration
	for _, s := range union(clip(spans, from, to)) {
		sum += s.To.Sub(s.From)
	}
	return sum
}

// work is what spans of one kind add up to.
type work struct {
	What    string
	Times   int
	Busy    time.Duration // in which at least one of the kind was
	Longest Span
}

// works returns the work by kind, in the order of their first begin.
func works(spans []Span) []work {
	var all []work
	byKind := map[string][]Span{}
	for _, s := range slices.SortedFunc(slices.Values(spans), func(a, b Span) int { return a.From.Compare(b.From) }) {
		if byKind[s.What] == nil {
			all = append(all, work{What: s.What})
		}
		byKind[s.What] = append(byKind[s.What], s)
	}
	for i := range all {
		of := byKind[all[i].What]
		all[i].Times = len(of)
		all[i].Longest = slices.MaxFunc(of, func(a, b Span) int { return int(a.To.Sub(a.From) - b.To.Sub(b.From)) })
		for _, s := range union(of) {
			all[i].Busy += s.To.Sub(s.From)
		}
	}
	return all
}
