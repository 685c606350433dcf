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
	Skipped Verdict = "skipped" // does not apply, or waits for something else that has failed; the reason says which
)

// Result is a check's verdict on one subject.
type Result struct {
	Check    string   `json:"check"`             // the sentence that should be true
	Subject  string   `json:"subject,omitempty"` // node, pod, service or object it is about
	Verdict  Verdict  `json:"verdict"`
	Reason   string   `json:"reason,omitempty"`   // why it is not passed, as last seen; of a passed one a remark
	Evidence []string `json:"evidence,omitempty"` // what a person would look at next
	Command  string   `json:"command,omitempty"`  // shows more
	Flapped  string   `json:"flapped,omitempty"`  // how often it was lost again, e.g. "flapped 4 times in 20s"

	// Blocked: it is skipped because something else has failed, and holds only once that does and it has been looked at.
	Blocked bool `json:"blocked,omitempty"`
	// Unseen: nothing has been seen yet, so there is nothing to print.
	Unseen bool `json:"-"`
	// Hopeless: waiting is unlikely to help, e.g. refused credentials.
	Hopeless bool `json:"-"`
	// Lost counts how often what it is about was lost while it was watched: breaks that are too short for an evaluation show by it.
	Lost int `json:"-"`
	// Ask is what to look up if it still fails in the end.
	Ask []Question `json:"-"`
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
	return len(results) > 0 && !slices.ContainsFunc(results, func(r Result) bool { return !r.holds() })
}

func (r Result) holds() bool { return r.Verdict != Failed && !r.Blocked }

// unseen is the result before the first look at a subject.
func unseen(subject, what string) Result {
	return Result{Subject: subject, Verdict: Failed, Reason: what + " not seen yet", Unseen: true}
}

func passed(subject string) Result { return Result{Subject: subject, Verdict: Passed} }

func failed(subject, reason string) Result {
	return Result{Subject: subject, Verdict: Failed, Reason: reason}
}

func skipped(subject, reason string) Result {
	return Result{Subject: subject, Verdict: Skipped, Reason: reason}
}

// blocked is the result where a look would only show the consequence of something that fails elsewhere.
func blocked(subject, by string) Result {
	return Result{Subject: subject, Verdict: Skipped, Reason: "waits: " + by, Blocked: true}
}

func unreadable(subject, what string, err *Broken) Result {
	result := failed(subject, what+" cannot be read: "+err.Reason)
	result.Hopeless = err.Hopeless
	return result
}
