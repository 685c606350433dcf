// Package own judges the checks that a stack file declares.
package own

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
)

// Seen are the objects of each check, by its name.
type Seen map[string]health.Seen[cluster.CheckedObject]

// Absent is what a check does without any object.
type Absent bool

// What a check does without any object.
const (
	AbsentIsListed Absent = false // what Flux has not applied yet is listed
	AbsentFails    Absent = true
)

// Evaluate judges the objects of all checks.
func Evaluate(checks []cluster.Check, seen Seen, absent Absent) []health.Result {
	var all []health.Check[Absent, Seen]
	for _, check := range checks {
		all = append(all, health.Check[Absent, Seen]{
			Name:  check.Name,
			Judge: func(absent Absent, seen Seen) []health.Result { return judge(check, seen[check.Name], absent) },
		})
	}
	return health.Evaluate(all, absent, seen, nil)
}

func judge(check cluster.Check, objects health.Seen[cluster.CheckedObject], absent Absent) []health.Result {
	title := check.Objects.Title()
	unknown := objects.Err != nil && objects.Err.Unknown
	if result, unread := objects.Unread(title, "the objects"); unread && !unknown {
		return []health.Result{result}
	}
	if unknown || len(objects.Items) == 0 {
		if absent == AbsentIsListed {
			return []health.Result{health.Skip(title, "does not exist yet, so it is not checked")}
		}
		return []health.Result{health.Fail(title, "does not exist").WithCommand(command(check, ""))}
	}
	return xslices.Map(objects.Items, func(object cluster.CheckedObject) health.Result { return judgeOne(check, object) })
}

func judgeOne(check cluster.Check, o cluster.CheckedObject) health.Result {
	if o.Holds {
		return health.Pass(o.Title(check))
	}
	result := health.Fail(o.Title(check), o.Reason(check)).WithEvidence("expression: " + check.Expression)
	if check.Message != "" && o.Problem != "" {
		result = result.WithEvidence(o.Problem)
	}
	check.Objects.Name = o.Name
	return result.WithCommand(command(check, o.Namespace))
}

// command returns the command that shows the objects.
func command(check cluster.Check, namespace string) string {
	of := check.Objects
	group, _, grouped := strings.Cut(of.APIVersion, "/")
	command := "kubectl get " + strings.ToLower(of.Kind)
	if grouped {
		command += "." + group
	}
	if namespace = cmp.Or(namespace, of.Namespace); namespace != "" {
		command += " -n " + namespace
	}
	if of.Name != "" {
		command += " " + of.Name + " -o yaml"
	} else if of.Selector != "" {
		command += fmt.Sprintf(" -l '%s'", of.Selector)
	}
	return command
}
