// Package syntax holds the forms that text in a stack file may have: host names, URLs, versions, sizes and the like.
// A form checks one value by itself. Rules for several values, such as unique names, are not checked here.
//
// All forms but git-branch take ASCII only: a letter that merely looks Latin is a fault that nobody sees.
package syntax

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/slipway-platform/slipway/cluster/secrecy"
)

// Form is a kind of text, by the name that struct tags use.
type Form struct {
	Name    string // such as "https-url"
	What    string // with its article, for messages: "a host name or address"
	Words   string // for the reference's column "form": "host name, at most 63 characters"
	Example string // a valid value
	Pattern string // RE2 and ECMA-262, anchored; a value that does not match it is not valid
	Secret  bool   // a value may hold a secret: show it only as Shown does

	anyScript bool // letters of all scripts are allowed, not only ASCII
	mayBeVoid bool // the empty text is valid

	pattern *regexp.Regexp // Pattern

	// check returns what is wrong with a one-line value, beside the pattern, or why the value does not match the pattern; nil if the pattern
	// says all. An empty Problem stands for "is not WHAT"; an empty Remedy is filled in with a suggestion, or with remedy.
	check func(value string) *Fault
	// fix returns what was possibly meant by a wrong value, best first. Wrong candidates are not suggested.
	fix func(value string) []string
	// remedy is for faults without suggestion; "" is "write it like EXAMPLE".
	remedy string
}

// Fault is what is wrong with a value, and how to put it right. Neither text repeats what may be a secret.
type Fault struct {
	Problem string // follows the value in a message: "is not a host name"
	Remedy  string // an imperative or a question: "did you mean pve1?"
}

// maxLength is the longest value that a form accepts, in bytes.
const maxLength = 4096

// Lookup returns the form of a name.
func Lookup(name string) (Form, bool) {
	i := slices.IndexFunc(forms, func(form Form) bool { return form.Name == name })
	if i < 0 {
		return Form{}, false
	}
	return forms[i], true
}

// forms are all forms.
var forms = func() []Form {
	all := slices.Concat(
		nameForms, hostForms, addressForms, urlForms, gitForms, proxmoxForms, talosForms, versionForms, ociForms, sizeForms,
		objectForms, expressionForms, scheduleForms,
	)
	for i := range all {
		all[i].pattern = regexp.MustCompile(all[i].Pattern)
	}
	return all
}()

// Check returns what is wrong with a value, nil if nothing is.
func (f Form) Check(value string) *Fault {
	fault := f.fault(value)
	if fault == nil {
		return nil
	}
	if fault.Problem == "" {
		fault.Problem = "is not " + f.What
	}
	if fault.Remedy == "" {
		fault.Remedy = f.suggestion(value)
	}
	return fault
}

// fault returns what is wrong with a value, without suggestion.
func (f Form) fault(value string) *Fault {
	if value == "" && f.mayBeVoid {
		return nil
	}
	if len(value) > maxLength {
		return because(fmt.Sprintf("has more than %d characters", maxLength))
	}
	if fault := lineFault(value, f.anyScript); fault != nil {
		if value != "" {
			fault.Remedy = "" // a suggestion says more
		}
		return fault
	}
	if f.check != nil {
		if fault := f.check(value); fault != nil {
			return fault
		}
	}
	if !f.pattern.MatchString(value) {
		return wrong()
	}
	if secrecy.IsWholeToken(value) && !slices.Contains(opaque, f.Name) {
		return because("has a token in it")
	}
	return nil
}

// suggestion is the remedy for a value that is wrong.
func (f Form) suggestion(value string) string {
	switch {
	case len(value) > maxLength:
		return f.advice()
	case secrecy.IsToken(value):
		return "revoke the token in it, and remove it"
	case !f.Secret && secrecy.HasPassword(value):
		return f.advice() // nothing is made of a text with a password, unless the form knows which part that is
	}
	clean := cleaned(value)
	candidates := []string{clean}
	if f.fix != nil {
		candidates = append(candidates, f.fix(clean)...)
	}
	for _, candidate := range candidates {
		// Shown differs from a candidate that is too long, odd, or possibly a secret.
		if candidate != "" && candidate != value && f.fault(candidate) == nil && Shown(f, candidate) == candidate {
			return "did you mean " + candidate + "?"
		}
	}
	if fault := lineFault(value, f.anyScript); fault != nil {
		return fault.Remedy
	}
	return f.advice()
}

// advice is the remedy that holds for every wrong value.
func (f Form) advice() string {
	if f.remedy != "" {
		return f.remedy
	}
	return "write it like " + f.Example
}

// wrong is the fault of a value that is simply not of its form.
func wrong() *Fault { return &Fault{} }

// refusing returns a check that refuses the values of which is reports true, by a fault as because makes it.
func refusing(is func(value string) bool, problem string, remedy ...string) func(string) *Fault {
	return func(value string) *Fault {
		if is(value) {
			return because(problem, remedy...)
		}
		return nil
	}
}

// because is a fault with a problem of its own, and possibly a remedy.
func because(problem string, remedy ...string) *Fault {
	fault := &Fault{Problem: problem}
	if len(remedy) > 0 {
		fault.Remedy = remedy[0]
	}
	return fault
}
