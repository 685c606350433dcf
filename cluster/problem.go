package cluster

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/cluster/syntax"
)

const (
	maxShown   = 50  // problems in an error's text
	maxValue   = 120 // characters of the value at the beginning of a problem
	maxOther   = 300 // characters of each other value in a problem
	maxProblem = 600 // characters of a problem, a remedy or a path
)

// Problem is one problem of a configuration.
type Problem struct {
	Path    string // key, in the form that "pulumi config set --path" takes after the namespace: nodePools[0].nodes[1].mac
	Problem string // what is wrong; begins with the value, unless missing or secret
	Remedy  string // what to do about it
	Line    int    // line of the stack file, from 1; 0 if only the path is known, from which config.Source.Line finds the line
}

// NewProblem returns a problem. It writes values on one line and shortens long ones.
func NewProblem(path, remedy, format string, args ...any) *Problem {
	for i, arg := range args {
		limit := maxOther
		if i == 0 && strings.HasPrefix(format, "%") {
			limit = maxValue
		}
		switch value := arg.(type) {
		case string:
			args[i] = shorten(value, limit)
		case fmt.Formatter: // formats itself, such as a secret
		case fmt.Stringer:
			args[i] = shorten(value.String(), limit)
		case error:
			args[i] = shorten(value.Error(), limit)
		}
	}
	return &Problem{Path: path, Problem: oneLine(fmt.Sprintf(format, args...)), Remedy: oneLine(remedy)}
}

// Error returns the problem as one sentence: path, value, problem; remedy.
func (p *Problem) Error() string {
	if p.Path == "" {
		return p.Problem + "; " + p.Remedy
	}
	return oneLine(syntax.ShownPath(p.Path)) + ": " + p.Problem + "; " + p.Remedy
}

// Problems are all problems of a configuration. Error returns the first 50, one on each line, and the number of the others.
type Problems []*Problem

// Error returns the text that is described at Problems.
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

// Shown returns the problems that Error contains.
func (p Problems) Shown() Problems { return p[:min(len(p), maxShown)] }

// More returns a text with the number of problems that Error does not contain; "" if there are none.
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
	return xslices.Map(p, func(problem *Problem) error { return problem })
}

// Findings collects problems, so that all are reported together. The zero Findings is empty and ready for use.
type Findings struct {
	list     Problems
	unusable map[string]bool
	reported map[[2]string]bool // path and problem of each item of list
}

// Found adds a problem with a readable value. It adds nothing below an unusable path, so that a missing or wrong value causes no
// further problems.
func (f *Findings) Found(path, remedy, format string, args ...any) {
	if !f.Unusable(path) {
		f.Include(NewProblem(path, remedy, format, args...))
	}
}

// Unreadable adds a problem and marks the path as unusable.
func (f *Findings) Unreadable(path, remedy, format string, args ...any) {
	f.Discard(path)
	f.Include(NewProblem(path, remedy, format, args...))
}

// fault adds the fault of a text of several lines, if there is one. It never shows the text.
func (f *Findings) fault(path string, fault *syntax.Fault) {
	if fault != nil {
		f.Found(path, fault.Remedy, "%s", fault.Problem)
	}
}

// oneKey is a key of the stack file, and whether the file has it.
type oneKey struct {
	path  string
	given bool
}

// refuse adds the same problem for each of the keys that the file has, as Found.
func (f *Findings) refuse(remedy, problem string, keys ...oneKey) {
	for _, key := range keys {
		if key.given && !f.Unusable(key.path) {
			f.Add(key.path, remedy, problem)
		}
	}
}

// unset adds a problem for each of the secrets that are set.
func (f *Findings) unset(problem string, secrets ...NamedSecret) {
	for _, one := range secrets {
		f.refuse("run: pulumi config rm slipway:"+one.Key, problem, oneKey{one.Key, one.Secret.IsSet()})
	}
}

// unused adds a problem with a secret of a section that is missing, if the secret is given.
func (f *Findings) unused(section string, one NamedSecret) {
	if one.Secret.IsSet() && !f.Unusable(section) {
		f.Found(one.Key, "add it, or run: pulumi config rm slipway:"+one.Key, "is for %s, which is missing", section)
	}
}

// Discard marks a path as unusable, because its value is missing or unreadable, which is reported already.
func (f *Findings) Discard(path string) {
	if f.unusable == nil {
		f.unusable = map[string]bool{}
	}
	f.unusable[path] = true
}

// Unusable reports whether the path, or one above it, is marked as unusable.
func (f *Findings) Unusable(path string) bool {
	for at := path; at != ""; at = parent(at) {
		if f.unusable[at] {
			return true
		}
	}
	return false
}

// Add adds a problem, even below an unusable path.
func (f *Findings) Add(path, remedy, problem string) {
	f.Include(&Problem{Path: path, Problem: oneLine(problem), Remedy: oneLine(remedy)})
}

// Include adds each problem once.
func (f *Findings) Include(problems ...*Problem) {
	if f.reported == nil {
		f.reported = map[[2]string]bool{}
	}
	for _, problem := range problems {
		if key := [2]string{problem.Path, problem.Problem}; !f.reported[key] {
			f.reported[key] = true
			f.list = append(f.list, problem)
		}
	}
}

// Len returns the number of problems.
func (f *Findings) Len() int { return len(f.list) }

// All returns the problems in the order in which they were found.
func (f *Findings) All() Problems { return f.list }

// Err returns nil without problems, otherwise Problems.
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

// parent returns the path of the object or list that contains the value at the path; empty at the top.
func parent(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// shorten removes the middle of a text that is too long.
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

// oneLine escapes line breaks and other invisible characters as in Go, and shortens a text that is too long.
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

// IsVisible returns false for control characters, for characters that change the direction of a text, and for separators that only
// some programs treat as line breaks.
func IsVisible(char rune) bool {
	if char >= ' ' && char <= '~' {
		return true
	}
	return !unicode.In(char, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
