package health

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Check is one condition that a cluster must meet. S is the spec with the expectations, C is what was seen of the cluster.
type Check[S, C any] struct {
	Name   string // the condition as a sentence, e.g. "the API server is ready"
	Looks  string // what is looked at, in Markdown; for docs/gates.md
	ByHand string // commands that show the same, separated by "; "; words in capitals are placeholders
	// Judge returns at least one result. A failed result without a command gets ByHand if that needs nothing that is unknown.
	Judge func(spec S, seen C) []Result
}

// placeholder is a word of ByHand that stands for something.
var placeholder = regexp.MustCompile(`\b[A-Z]{2,}\b`)

// Evaluate runs checks in their order. The results of one check are sorted by subject. In commands, placeholders are replaced by the
// values for the subject: pairs of placeholder and value. A nil function means that there are none.
func Evaluate[S, C any](checks []Check[S, C], spec S, seen C, values func(subject string) []string) []Result {
	var all []Result
	for _, check := range checks {
		results := check.Judge(spec, seen)
		slices.SortStableFunc(results, func(a, b Result) int { return cmp.Compare(a.Subject, b.Subject) })
		for i := range results {
			results[i].Check = check.Name
			results[i].Command = command(results[i], check.ByHand, values)
		}
		all = append(all, results...)
	}
	return all
}

func command(result Result, byHand string, values func(subject string) []string) string {
	if result.Command == "" && (result.Verdict != Failed || result.Unseen) {
		return ""
	}
	text := cmp.Or(result.Command, byHand)
	if values != nil {
		text = strings.NewReplacer(values(result.Subject)...).Replace(text)
	}
	if result.Command == "" && placeholder.MatchString(text) {
		return ""
	}
	return text
}

// Hold reports whether there are results and none of them failed or is blocked.
func Hold(results []Result) bool {
	return len(results) > 0 && !slices.ContainsFunc(results, func(r Result) bool { return r.Verdict == Failed || r.Blocked })
}
