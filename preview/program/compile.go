package program

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/slipway-platform/slipway/preview/report"
)

const doesNotCompile = "the program does not compile"

// compileError says where a program does not compile.
type compileError struct{ problems []report.Problem }

func (e *compileError) Error() string {
	texts := []string{doesNotCompile}
	for _, problem := range e.problems {
		texts = append(texts, fmt.Sprintf("%s:%d: %s", problem.File, problem.Line, problem.Text))
	}
	return strings.Join(texts, "\n")
}

// Problems returns why New has no program, with files and lines of the checkout where the compiler names them.
func Problems(err error) []report.Problem {
	if failed := (*compileError)(nil); errors.As(err, &failed) {
		return failed.problems
	}
	return []report.Problem{{Text: err.Error()}}
}

// place is a line of Go's output that names a file of the checkout: FILE:LINE:COLUMN: TEXT, or without a column.
var place = regexp.MustCompile(`^(\S+\.(?:go|mod)):(\d+)(?::\d+)?: (.+)$`)

// newCompileError reads the output of a go build that has failed.
func newCompileError(out []byte, err error) error {
	failed := &compileError{}
	for line := range strings.Lines(string(out)) {
		if parts := place.FindStringSubmatch(strings.TrimSpace(line)); parts != nil {
			number, _ := strconv.Atoi(parts[2])
			failed.problems = append(failed.problems, report.Problem{
				File: filepath.Clean(parts[1]), Line: number, Text: doesNotCompile + ": " + parts[3],
			})
		}
	}
	if len(failed.problems) == 0 {
		return fmt.Errorf("%s: %w %s", doesNotCompile, err, tail(out))
	}
	return failed
}
