package cluster

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/slipway-platform/slipway/internal/syntax"
)

const (
	maxShown   = 50  // problems that an error's text has; whoever has more fixes the first ones first
	maxValue   = 120 // characters of a value that a problem begins with
	maxOther   = 300 // characters of what else it names
	maxProblem = 600 // characters of a problem, a remedy or a path
)

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	Path    string // key, in the form that "pulumi config set --path" takes after the namespace: nodePools[0].nodes[1].mac
	Problem string // what is wrong, beginning with the value if there is one to show; a secret's never is
	Remedy  string // what to do about it
	Line    int    // line of the stack file, from 1; 0 where only the path is known, which Lines.Find takes
}

// NewProblem makes a problem whose values are on one line and not too long.
func NewProblem(path, remedy, format string, args ...any) *Problem {
	for i, arg := range args {
		limit := maxOther
		if i == 0 && strings.HasPrefix(format, "%") {
			limit = maxValue
		}
		switch value := arg.(type) {
		case string:
			args[i] = shorten(value, limit)
		case fmt.Formatter: // decides for itself what is seen of it
		case fmt.Stringer:
			args[i] = shorten(value.String(), limit)
		case error:
			args[i] = shorten(value.Error(), limit)
		}
	}
	return &Problem{Path: path, Problem: oneLine(fmt.Sprintf(format, args...)), Remedy: oneLine(remedy)}
}

// Error is the problem as one sentence: path, value, problem; remedy.
func (p *Problem) Error() string {
	if p.Path == "" {
		return p.Problem + "; " + p.Remedy
	}
	return oneLine(syntax.ShownPath(p.Path)) + ": " + p.Problem + "; " + p.Remedy
}

// Problems is everything that is wrong with a configuration. Its text has the first 50 problems, one on each line, and
// the number of the others.
type Problems []*Problem

// Error is the text that is described above.
func (p Problems) Error() string {
	var lines []string
	for _, problem := range p.Shown() {
		lines = append(lines, problem.Error())
	}
	if more := p.More(); more != "" {
		lines = append(lines, more)
	}
	return strings.Join(lines, "\n")
}

// Shown returns the problems that Error has.
func (p Problems) Shown() Problems { return p[:min(len(p), maxShown)] }

// More says how many problems there are beside those that are shown; it is empty if there are none.
func (p Problems) More() string {
	switch more := len(p) - maxShown; {
	case more < 1:
		return ""
	case more == 1:
		return "and 1 more problem"
	default:
		return fmt.Sprintf("and %d more problems", more)
	}
}

// Unwrap returns each problem, a *Problem.
func (p Problems) Unwrap() []error {
	errs := make([]error, len(p))
	for i, problem := range p {
		errs[i] = problem
	}
	return errs
}

// Findings collects everything that is wrong, so that it can be said at once. The zero Findings is empty and ready for use.
type Findings struct {
	list     Problems
	unusable map[string]bool
	said     map[[2]string]bool // path and problem of those of the list
}

// Found adds a problem with a value that could be read. Nothing is added below a path that is unusable: what follows from a
// value that is missing or wrong is left out.
func (f *Findings) Found(path, remedy, format string, args ...any) {
	if !f.Unusable(path) {
		f.Include(NewProblem(path, remedy, format, args...))
	}
}

// Unreadable adds a problem that leaves no value at the path.
func (f *Findings) Unreadable(path, remedy, format string, args ...any) {
	f.Discard(path)
	f.Include(NewProblem(path, remedy, format, args...))
}

// Discard marks a path as unusable: its value is missing or cannot be read, which is reported.
func (f *Findings) Discard(path string) {
	if f.unusable == nil {
		f.unusable = map[string]bool{}
	}
	f.unusable[path] = true
}

// Unusable reports whether the path, or one above it, has no value that can be used.
func (f *Findings) Unusable(path string) bool {
	for at := path; at != ""; at = parent(at) {
		if f.unusable[at] {
			return true
		}
	}
	return false
}

// Add adds a problem whatever is unusable.
func (f *Findings) Add(path, remedy, problem string) {
	f.Include(&Problem{Path: path, Problem: oneLine(problem), Remedy: oneLine(remedy)})
}

// Include adds a problem once.
func (f *Findings) Include(problem *Problem) {
	key := [2]string{problem.Path, problem.Problem}
	if f.said[key] {
		return
	}
	if f.said == nil {
		f.said = map[[2]string]bool{}
	}
	f.said[key] = true
	f.list = append(f.list, problem)
}

// Len is the number of problems.
func (f *Findings) Len() int { return len(f.list) }

// All lists the problems in the order in which they were found.
func (f *Findings) All() Problems { return f.list }

// Err is nil if nothing is wrong, or else Problems.
func (f *Findings) Err() error {
	if len(f.list) == 0 {
		return nil
	}
	return f.list
}

// ProblemsOf returns the problems of an error, or nil if it has none.
func ProblemsOf(err error) Problems {
	var all Problems
	if errors.As(err, &all) {
		return all
	}
	return nil
}

// parent is the path of the object or list that holds the value at the path; empty at the top.
func parent(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// shorten leaves out the middle of a text that is too long.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	chars := []rune(text)
	if len(chars) <= limit {
		return text
	}
	half := (limit - 1) / 2
	return string(chars[:half]) + "…" + string(chars[len(chars)-half:])
}

// oneLine writes the line breaks and other characters that nobody sees as Go does, and shortens what is too long.
func oneLine(text string) string {
	text = shorten(text, maxProblem)
	if !strings.ContainsFunc(text, isHidden) {
		return text
	}
	var out strings.Builder
	for _, char := range text {
		if isHidden(char) {
			out.WriteString(strings.Trim(fmt.Sprintf("%q", char), "'"))
		} else {
			out.WriteRune(char)
		}
	}
	return out.String()
}

func isHidden(char rune) bool { return !IsVisible(char) || char == unicode.ReplacementChar }

// IsVisible is false for control characters, for those that change the direction of a text, and for separators that
// count as a line break in some places only.
func IsVisible(char rune) bool {
	if char >= ' ' && char <= '~' {
		return true
	}
	return !unicode.In(char, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
