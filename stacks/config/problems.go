package config

import (
	"errors"
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	Path    string // key, in the form that "pulumi config set --path" takes after the namespace: nodePools[0].nodes[1].mac
	Problem string // what is wrong, beginning with the value if there is one to show; a secret's never is
	Remedy  string // what to do about it
}

// Error is the problem as one sentence: path, value, problem; remedy.
func (p *Problem) Error() string {
	return p.Path + ": " + p.Problem + "; " + p.Remedy
}

// problems collects everything that is wrong, so that it can be said at once.
type problems struct {
	list     []*Problem
	unusable map[string]bool
}

// found adds a problem with a value that could be read. A value that could not, or that is missing, is already
// reported, so what follows from it is left out.
func (p *problems) found(path, remedy, format string, args ...any) {
	for at := path; at != ""; at = parent(at) {
		if p.unusable[at] {
			return
		}
	}
	p.add(path, remedy, fmt.Sprintf(format, args...))
}

// unreadable adds a problem that leaves no value at the path.
func (p *problems) unreadable(path, remedy, format string, args ...any) {
	p.unusable[path] = true
	p.add(path, remedy, fmt.Sprintf(format, args...))
}

func (p *problems) add(path, remedy, problem string) {
	p.list = append(p.list, &Problem{Path: path, Problem: problem, Remedy: remedy})
}

// err is nil if nothing is wrong, or all problems joined, each of them a *Problem.
func (p *problems) err() error {
	errs := make([]error, len(p.list))
	for i, problem := range p.list {
		errs[i] = problem
	}
	return errors.Join(errs...)
}

// parent is the path of the object or list that holds the value at the path; empty at the top.
func parent(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}
