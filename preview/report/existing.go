package report

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Operation is what a program does to a resource of the state, or to a new one.
type Operation struct {
	Op      string // as Pulumi names it: create, update, replace, delete, same; or Forget
	Type    string // token
	Name    string
	Protect bool           // in the state, and in the program if that has the resource: Pulumi refuses to delete or to replace it
	Before  map[string]any // inputs in the state; secrets are hidden
	After   map[string]any // inputs that the program registers; secrets are hidden, and what is known only after a run has a stand-in
	Because []string       // inputs for which the provider replaces the resource; none if another resource is the cause
}

// Forget is what a run does to a resource that leaves the stack, and stays where it is.
const Forget = "forget"

// Existing is what a run would do to the existing resources, by the stack's state.
type Existing struct {
	Of         string            `json:"of"`                   // time of the state
	Operations []OperationReport `json:"operations,omitempty"` // those of the change alone; what destroys comes first
	OfBase     []OperationReport `json:"ofBase,omitempty"`     // those that a run of the base would do, too
	Unknown    []string          `json:"unknown,omitempty"`    // resources for which only a run knows whether they change
	Same       int               `json:"same"`                 // number of resources that stay as they are
}

// OperationReport is one operation. The operations are those of Pulumi.
type OperationReport struct {
	Op      string   `json:"op"` // delete, replace, update, forget, create
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Protect bool     `json:"protect,omitempty"`
	Lines   []string `json:"lines,omitempty"` // of the inputs that differ; none for create and delete
}

func (o OperationReport) title() string { return short(o.Type) + " " + o.Name }

func (e *Existing) len() int {
	if e == nil {
		return 0
	}
	return len(e.Operations) + len(e.OfBase)
}

// order of the operations in a report: what destroys comes first.
var order = []string{"delete", "replace", "update", Forget, "create"}

// compareExisting returns what the change does to what exists; nil without a state.
func compareExisting(before, after *Stack) *Existing {
	if !after.Existing.Ran {
		return nil
	}
	e := &Existing{Of: after.StateOf}
	ofBase := map[string]OperationReport{}
	if before.Existing.Works() {
		operations, _, _ := knownOperations(before.Existing, before.Program)
		for _, one := range operations {
			ofBase[one.title()] = one
		}
	}
	var operations []OperationReport
	operations, e.Unknown, e.Same = knownOperations(after.Existing, after.Program)
	for _, one := range operations {
		if reflect.DeepEqual(ofBase[one.title()], one) {
			e.OfBase = append(e.OfBase, one)
		} else {
			e.Operations = append(e.Operations, one)
		}
	}
	return e
}

// knownOperations returns the operations of a program on a state, the resources of which only a run knows whether they change, and the
// number of resources that stay. empty is the same program on an empty backend, with other placeholders for the secrets.
func knownOperations(program, empty Program) (operations []OperationReport, unknown []string, same int) {
	registered := byTitle(empty)
	for _, one := range program.Operations {
		r := OperationReport{Op: one.Op, Type: one.Type, Name: one.Name, Protect: one.Protect}
		if one.Op != "create" && one.Op != "delete" && one.Op != Forget {
			var other any
			if resource, is := registered[r.title()]; is {
				other = resource.Inputs
			}
			was, is := comparableOf(withoutDefaults(one), tree(one.After), other)
			r.Lines = differ(Lines(was), Lines(is))
			r.Op = one.knownOp(r.Lines)
		}
		switch r.Op {
		case "same":
			same++
		case "":
			unknown = append(unknown, r.title())
		default:
			operations = append(operations, r)
		}
	}
	slices.SortStableFunc(operations, func(a, b OperationReport) int {
		return cmp.Compare(slices.Index(order, a.Op), slices.Index(order, b.Op))
	})
	return operations, unknown, same
}

// knownOp returns the kind of an operation by the comparable lines that differ; "" if none is a reason for it.
func (o Operation) knownOp(lines []string) string {
	reason := slices.ContainsFunc(inputs(lines), func(input string) bool {
		return slices.ContainsFunc(o.Because, func(key string) bool { return inputOf(key) == input })
	})
	switch {
	case o.Op == "replace" && (reason || len(o.Because) == 0):
		return "replace"
	case o.Op == "same" && (len(lines) == 0 || o.Type != typeConfiguration): // the provider says that nothing changes
		return "same"
	case len(lines) > 0:
		return "update"
	}
	return ""
}

// withoutDefaults returns the inputs in the state without the provider's additions: the provider of the cluster is not configured here, so
// it adds nothing to the program's inputs.
func withoutDefaults(o Operation) any {
	was := tree(o.Before)
	if !strings.HasPrefix(o.Type, "kubernetes:") {
		return was
	}
	var drop func(was, is any)
	drop = func(was, is any) {
		old, _ := was.(map[string]any)
		now, _ := is.(map[string]any)
		for key, value := range old {
			switch below, has := now[key]; {
			case has:
				drop(value, below)
			case isEmpty(value):
				delete(old, key)
			}
		}
	}
	drop(was, tree(o.After))
	if _, asked := o.After[inputCompat]; asked {
		was.(map[string]any)[inputCompat] = o.After[inputCompat]
	}
	return was
}

// inputCompat is the input of a release that the provider takes and does not store.
const inputCompat = "compat"

func isEmpty(value any) bool {
	of := reflect.ValueOf(value)
	switch of.Kind() {
	case reflect.Slice, reflect.Map:
		return of.Len() == 0
	}
	return !of.IsValid() || of.IsZero()
}

func tree(inputs map[string]any) any {
	if inputs == nil {
		return map[string]any{}
	}
	return plain(inputs)
}

// comparableOf returns the inputs of a resource in the state and in the program, without what cannot be compared: secrets, what is known
// only after a run, and what differs in other, the inputs in another run of the program with other secrets; nil without.
func comparableOf(was, is, other any) (any, any) {
	if !known(was) || !known(is) {
		return nil, nil
	}
	switch old := was.(type) {
	case map[string]any:
		now, both := is.(map[string]any)
		if !both {
			break
		}
		others, _ := other.(map[string]any)
		before, after := map[string]any{}, map[string]any{}
		for _, key := range union(old, now) {
			a, had := old[key]
			b, has := now[key]
			switch {
			case had && has:
				before[key], after[key] = comparableOf(a, b, others[key])
			case had:
				before[key] = a
			default:
				after[key] = b
			}
		}
		return before, after
	case []any:
		now, both := is.([]any)
		if !both || len(old) != len(now) {
			break
		}
		others, _ := other.([]any)
		before, after := make([]any, len(old)), make([]any, len(old))
		for i := range old {
			var third any
			if i < len(others) {
				third = others[i]
			}
			before[i], after[i] = comparableOf(old[i], now[i], third)
		}
		return before, after
	case string:
		third, text := other.(string)
		if text && !strings.Contains(third, Later) && third != is {
			return nil, nil
		}
	}
	return was, is
}

// known reports whether a value is neither a secret nor known only after a run. A text with several lines is known if only some of its
// lines are not.
func known(value any) bool {
	text, is := value.(string)
	return !is || text != Hidden && (!strings.Contains(text, Later) || strings.Contains(strings.TrimSpace(text), "\n"))
}

// existingDangers names what a run would destroy that exists.
func (r *StackReport) existingDangers() []string {
	if r.Existing == nil {
		return nil
	}
	var found []string
	for _, one := range r.Existing.Operations {
		does := map[string]string{"delete": "deleted", "replace": "replaced: what exists is deleted"}[one.Op]
		switch {
		case does == "":
		case one.Protect:
			found = append(found, fmt.Sprintf("by the state, %s is %s. It is protected: `up` refuses until the protection is removed.",
				code(one.title()), does))
		case one.Type == typeNamespace:
			found = append(found, fmt.Sprintf("by the state, %s is %s, with everything in it.", code(one.title()), does))
		case slices.Contains([]string{typeVM, typeRelease}, one.Type) || strings.HasPrefix(one.Type, "pulumi:providers:"):
			found = append(found, fmt.Sprintf("by the state, %s is %s.", code(one.title()), does))
		}
	}
	return found
}
