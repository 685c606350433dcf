package health

import (
	"cmp"
	"slices"
)

// Verdict is what a check says about one subject.
type Verdict string

// The verdicts. Failed means "not yet" for as long as the probe waits.
const (
	Passed  Verdict = "passed"
	Failed  Verdict = "failed"
	Warning Verdict = "warning" // reported, and holds nothing up
	Skipped Verdict = "skipped" // does not apply; the reason says why
)

// Result is a check's verdict on one subject.
type Result struct {
	Check    string   `json:"check"`             // the sentence that should be true
	Subject  string   `json:"subject,omitempty"` // node, pod, service or object it is about
	Verdict  Verdict  `json:"verdict"`
	Reason   string   `json:"reason,omitempty"`   // why it is not passed, as last seen
	Evidence []string `json:"evidence,omitempty"` // what a person would look at next
	Command  string   `json:"command,omitempty"`  // shows more

	// Unseen: nothing has been seen yet, so there is nothing to print.
	Unseen bool `json:"-"`
	// Hopeless: waiting is unlikely to help, e.g. refused credentials.
	Hopeless bool `json:"-"`
}

// Check is one sentence about a cluster that should be true. What it reads is of type T; it returns at least one result.
type Check[T any] struct {
	Name     string
	Evaluate func(T) []Result
}

// Evaluate runs checks in their order; a check's results are sorted by subject.
func Evaluate[T any](checks []Check[T], seen T) []Result {
	var all []Result
	for _, check := range checks {
		results := check.Evaluate(seen)
		slices.SortStableFunc(results, func(a, b Result) int { return cmp.Compare(a.Subject, b.Subject) })
		for i := range results {
			results[i].Check = check.Name
		}
		all = append(all, results...)
	}
	return all
}

// Hold reports whether nothing stands in the way. Nothing at all is not enough.
func Hold(results []Result) bool {
	return len(results) > 0 && !slices.ContainsFunc(results, func(r Result) bool { return r.Verdict == Failed })
}

// unseen is the result before the first look at a subject.
func unseen(subject, what string) Result {
	return Result{Subject: subject, Verdict: Failed, Reason: what + " not seen yet", Unseen: true}
}

func passed(subject string) Result { return Result{Subject: subject, Verdict: Passed} }

func failed(subject, reason string) Result {
	return Result{Subject: subject, Verdict: Failed, Reason: reason}
}
