package health

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/slipway-platform/slipway/internal/probe"
)

// Verdict is what a check says about one subject.
type Verdict string

// The verdicts. While the probe waits, Failed means "not yet".
const (
	Passed  Verdict = "passed"
	Failed  Verdict = "failed"
	Skipped Verdict = "skipped" // does not apply, or depends on something that failed; the reason says which
)

// Result is a check's verdict on one subject.
type Result struct {
	Check    string   `json:"check"`             // name of the check
	Subject  string   `json:"subject,omitempty"` // node, pod, service or object; "" means the whole cluster
	Verdict  Verdict  `json:"verdict"`
	Reason   string   `json:"reason,omitempty"`   // why it did not pass, as last seen; for a passed result, a remark
	Evidence []string `json:"evidence,omitempty"` // details for the person who repairs it
	Command  string   `json:"command,omitempty"`  // commands that show more, separated by "; "
	Flapped  string   `json:"flapped,omitempty"`  // how often the condition was lost, e.g. "flapped 4 times in 20s"

	// Held is the time from the beginning of the wait until the condition was seen to hold, for the last time. It is 0 for a result that
	// did not pass, or passed at the first evaluation.
	Held probe.Duration `json:"held,omitempty"`
	// Blocked: skipped because something it depends on failed. It counts as not met.
	Blocked bool `json:"blocked,omitempty"`
	// Unseen: the subject has not been read yet. It counts as not met and is not printed.
	Unseen bool `json:"-"`
	// Hopeless: waiting is unlikely to help, e.g. refused credentials.
	Hopeless bool `json:"-"`
	// Lost is the number of transitions to not-ready that the watch saw. It also counts those between two evaluations.
	Lost int `json:"-"`
	// Ask lists what to look up when the wait ends and this result still fails.
	Ask []Question `json:"-"`
}

// Pass is the result for a subject that meets the condition.
func Pass(subject string) Result { return Result{Subject: subject, Verdict: Passed} }

// Fail is the result for a subject that does not meet the condition.
func Fail(subject, reason string) Result {
	return Result{Subject: subject, Verdict: Failed, Reason: reason}
}

// FailObject is the result for an object in a namespace that does not meet the condition, with its description and its events.
func FailObject(kind, namespace, name, reason string) Result {
	result := Fail(kind+" "+namespace+"/"+name, reason)
	result.Command = fmt.Sprintf("kubectl -n %s describe %s %s", namespace, strings.ToLower(kind), name)
	return result.Asks(Question{Kind: Events, Object: kind, Namespace: namespace, Name: name})
}

// Skip is the result for a subject that the check does not apply to.
func Skip(subject, reason string) Result {
	return Result{Subject: subject, Verdict: Skipped, Reason: reason}
}

// Block is the result for a subject that depends on something that failed: only the cause is reported as failed.
func Block(subject, cause string) Result {
	return Result{Subject: subject, Verdict: Skipped, Reason: "waits: " + cause, Blocked: true}
}

// NotSeen is the result for a subject of which something has not been read yet.
func NotSeen(subject, what string) Result {
	return Result{Subject: subject, Verdict: Failed, Reason: what + " not seen yet", Unseen: true}
}

// Unreadable is the result for a subject of which something cannot be read.
func Unreadable(subject, what string, err *Broken) Result {
	result := Fail(subject, what+" cannot be read: "+err.Reason)
	result.Hopeless = err.Hopeless
	return result
}

// Asks adds questions to a result.
func (r Result) Asks(questions ...Question) Result {
	r.Ask = append(r.Ask, questions...)
	return r
}

// WithCommand sets the commands of a result.
func (r Result) WithCommand(commands string) Result {
	r.Command = commands
	return r
}

// WithEvidence adds lines to the evidence of a result.
func (r Result) WithEvidence(lines ...string) Result {
	r.Evidence = append(r.Evidence, lines...)
	return r
}

// ForGood marks a failed result that waiting is unlikely to change.
func (r Result) ForGood() Result {
	r.Hopeless = true
	return r
}

// sentence is the subject and the condition in one line.
func (r Result) sentence() string {
	if r.Subject == "" {
		return r.Check
	}
	return r.Subject + ": " + r.Check
}

// remarked reports whether a skipped result is listed in the report: nothing is wrong, but a person should know, e.g. an undeclared node.
func (r Result) remarked() bool { return r.Verdict == Skipped && !r.Blocked && r.Subject != "" }

// rank orders results: 4 failed, 3 not read yet, 2 blocked, which has not been judged, 1 passed, 0 does not apply.
func (r Result) rank() int {
	switch {
	case r.Verdict == Failed && !r.Unseen:
		return 4
	case r.Verdict == Failed:
		return 3
	case r.Blocked:
		return 2
	case r.Verdict == Passed:
		return 1
	}
	return 0
}

// key identifies the condition of a result: check and subject.
type key struct{ check, subject string }

func (r Result) key() key { return key{r.Check, r.Subject} }

// Question is something to look up once a check has failed. Checks only ask. Package observe finds the answers when the probe ends
// without success, and adds them to the evidence.
type Question struct {
	Kind QuestionKind

	Namespace string     // of the pod or object
	Name      string     // of the pod, object or Talos service
	Container string     // for PodLog and MeshFindings
	Previous  bool       // for PodLog: log of the container's last run
	Object    string     // for Events: kind of the object, e.g. Pod; for MeshFindings: name of the peer
	Address   netip.Addr // for ServiceLog: of the node
	Node      string     // for ServiceLog: name of the node
}

// QuestionKind is where the answer is found.
type QuestionKind string

// The kinds of questions.
const (
	PodLog     QuestionKind = "pod log"     // the last lines of a container's log
	Events     QuestionKind = "events"      // the newest Warning events about an object
	ServiceLog QuestionKind = "service log" // the last lines of a Talos service's log

	MeshFindings QuestionKind = "mesh findings" // what Cilium finds wrong in the connection of a pod's container to a peer
)

// NotReady is the reason for an object whose Ready condition is not True; status is "" if it has no such condition.
func NotReady(status, reason, message string) string {
	if status == "" {
		return "has no Ready condition yet"
	}
	text := "Ready is " + status
	for _, part := range []string{reason, message} {
		if part != "" {
			text += ": " + part
		}
	}
	return text
}
