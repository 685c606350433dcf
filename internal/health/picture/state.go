package picture

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"
)

// State is what a stack's state adds to the events: the dependencies of a resource, and the exact time of its change.
type State struct {
	dependencies map[string][]string  // by URN: the URNs of its dependencies, its provider and its parent
	modified     map[string]time.Time // by URN: when its last operation ended
	outputs      map[string]string    // of the stack: those that are text and not secret
}

// deployment is the part of the output of `pulumi stack export` that is read.
type deployment struct {
	Deployment *struct {
		Resources []struct {
			URN                  string              `json:"urn"`
			Type                 string              `json:"type"`
			Parent               string              `json:"parent"`
			Provider             string              `json:"provider"` // URN::ID
			Dependencies         []string            `json:"dependencies"`
			PropertyDependencies map[string][]string `json:"propertyDependencies"`
			Modified             time.Time           `json:"modified"`
			Delete               bool                `json:"delete"` // it waits to be deleted, and another has its URN
			Outputs              json.RawMessage     `json:"outputs"`
		} `json:"resources"`
	} `json:"deployment"`
}

// stackType is the type of the resource that has the stack's outputs.
const stackType = "pulumi:pulumi:Stack"

// ReadState reads what `pulumi stack export` has written. Of values, it keeps only the stack's outputs that are text and not secret.
func ReadState(export io.Reader) (*State, error) {
	var d deployment
	// The error is left out, because it may quote a value.
	if err := json.NewDecoder(export).Decode(&d); err != nil || d.Deployment == nil {
		return nil, errors.New("state: is not the output of pulumi stack export; give its file")
	}
	state := &State{dependencies: map[string][]string{}, modified: map[string]time.Time{}, outputs: map[string]string{}}
	for _, r := range d.Deployment.Resources {
		if r.Delete {
			continue
		}
		all := append([]string{r.Parent}, r.Dependencies...)
		for _, urns := range r.PropertyDependencies {
			all = append(all, urns...)
		}
		if at := strings.LastIndex(r.Provider, "::"); at > 0 {
			all = append(all, r.Provider[:at])
		}
		state.dependencies[r.URN] = all
		if !r.Modified.IsZero() {
			state.modified[r.URN] = r.Modified.UTC()
		}
		if r.Type == stackType {
			state.outputs = texts(r.Outputs)
		}
	}
	return state, nil
}

// texts returns the values of an object that are text. A secret is an object.
func texts(object json.RawMessage) map[string]string {
	var values map[string]json.RawMessage
	_ = json.Unmarshal(object, &values) // a stack without outputs has none
	found := map[string]string{}
	for name, value := range values {
		var text string
		if json.Unmarshal(value, &text) == nil {
			found[name] = text
		}
	}
	return found
}

// Output returns an output of the stack; "" if it is missing, secret or no text.
func (s *State) Output(name string) string {
	if s == nil {
		return ""
	}
	return s.outputs[name]
}

// refine makes the times of a run more precise. The events have whole seconds. The state has the end of the last operation on a resource,
// and no operation begins before its dependencies have ended.
func (s *State) refine(run *Run) {
	ended := map[string]time.Time{}
	for _, r := range run.Resources {
		if r.Component || len(r.Steps) == 0 {
			continue
		}
		last := &r.Steps[len(r.Steps)-1]
		if at := s.modified[r.URN]; last.Ended && !last.Failed && within(last.To, at) && !at.Before(last.From) {
			last.To = at
		}
		ended[r.URN] = r.To()
	}
	for _, r := range run.Resources {
		if r.Component || len(r.Steps) == 0 {
			continue
		}
		first := &r.Steps[0]
		for _, urn := range s.dependencies[r.URN] {
			if at := ended[urn]; urn != r.URN && within(first.From, at) && at.After(first.From) && !at.After(first.To) {
				first.From = at
			}
		}
	}
}

// within reports whether a precise time may belong to an event of a whole second. The engine writes the event after it has noted the time.
func within(event, precise time.Time) bool {
	after := precise.Sub(event)
	return after > -time.Second && after < time.Second
}
