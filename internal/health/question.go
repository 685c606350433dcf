package health

// Question is what a person would look up next, once a check has failed. The checks only ask; package observe finds the answers when
// a probe ends without success, and they become the result's evidence.
type Question struct {
	Kind QuestionKind

	Namespace string // of the pod or object
	Name      string // of the pod, object or Talos service
	Container string // for PodLog
	Previous  bool   // for PodLog: of the container's last run
	Object    string // for Events: kind of the object, e.g. Pod
	Address   string // for ServiceLog: of the node
	Node      string // for ServiceLog: of the node
}

// QuestionKind is where the answer is found.
type QuestionKind string

// The kinds of questions.
const (
	PodLog     QuestionKind = "pod log"     // the last lines of a container's log
	Events     QuestionKind = "events"      // the newest Warning events about an object
	ServiceLog QuestionKind = "service log" // the last lines of a Talos service's log
)

// asks lists what is to be looked up about a failed result.
func (r Result) asks(questions ...Question) Result {
	r.Ask = append(r.Ask, questions...)
	return r
}
