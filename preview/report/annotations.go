package report

import (
	"fmt"
	"strings"
)

// Annotations writes the problems as commands of a GitHub workflow, which show them beside the lines of the change.
func (r Report) Annotations() string {
	var text strings.Builder
	for _, stack := range r.Stacks {
		for _, problem := range stack.Problems {
			at := ""
			if problem.File != "" {
				at = " file=" + property(problem.File)
				if problem.Line > 0 {
					at += fmt.Sprintf(",line=%d", problem.Line)
				}
			}
			fmt.Fprintf(&text, "::error%s::%s\n", at, message(problem.Text))
		}
	}
	return text.String()
}

// Fails reports whether the change does not work.
func (r Report) Fails() bool {
	for _, stack := range r.Stacks {
		if len(stack.Problems) > 0 {
			return true
		}
	}
	return false
}

// message escapes the text of a command as GitHub's own toolkit does, so that no text can begin another command.
func message(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(text)
}

func property(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(text)
}
