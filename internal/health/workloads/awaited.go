package workloads

import (
	"fmt"
	"strings"

	"github.com/slipway-platform/slipway/internal/health"
)

// Awaited is an object that a controller of the releases must have acted on, such as a SealedSecret.
type Awaited struct {
	Group     string `json:"group"`
	Version   string `json:"version"`
	Resource  string `json:"resource"` // plural name of its kind, e.g. sealedsecrets
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Condition string `json:"condition"` // type of the condition that must be True for the newest spec
}

// Title is the name of the object in a report: Kind namespace/name.
func (a Awaited) Title() string { return a.Kind + " " + a.Namespace + "/" + a.Name }

// Acted is what a controller has reported of an object.
type Acted struct {
	Status, Message string // of the condition; "" without one
	Current         bool   // the controller has seen the newest spec
}

var acted = health.Check[*Spec, *Cluster]{
	Name:   "the controllers have acted on the objects that show it",
	Looks:  "a condition of each such object, for its newest spec",
	ByHand: "kubectl -n NAMESPACE describe KIND NAME",
	Judge:  afterRollout("there are no such objects", func(spec *Spec) []Awaited { return spec.Awaits }, Awaited.judge),
}

func (a Awaited) judge(seen *Cluster) health.Result {
	title := a.Title()
	objects := seen.Acted[title]
	if result, missing := objects.Unread(title, "it"); missing {
		return result
	}
	reason := "does not exist"
	if len(objects.Items) > 0 {
		switch one := objects.Items[0]; {
		case one.Status == "":
			reason = fmt.Sprintf("has no condition %s yet", a.Condition)
		case !one.Current:
			reason = "its controller has not seen the newest spec yet"
		case one.Status != "True":
			reason = strings.TrimSuffix(fmt.Sprintf("%s is %s: %s", a.Condition, one.Status, one.Message), ": ")
		default:
			return health.Pass(title)
		}
	}
	return health.Fail(title, reason).
		WithCommand(fmt.Sprintf("kubectl -n %s describe %s %s", a.Namespace, strings.ToLower(a.Kind), a.Name))
}
