package picture

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/cluster/secrecy"
)

// Run is what the engine's events tell of an update: of `pulumi up`, refresh or destroy.
type Run struct {
	Began, Ended time.Time   // of the first and the last event
	Complete     bool        // the log has the engine's summary; without it, the update was killed, or runs
	Failed       bool        // the engine's summary, or an operation, says so
	Preview      bool        // nothing was done
	Resources    []*Resource // in the order of their first event; each URN once
	Messages     []Message   // errors and warnings that are about no resource
	Cut          bool        // the last line of the log is not complete
}

// Resource is a resource of an update.
type Resource struct {
	URN, Type, Name string
	Parent          string // URN; "" if there is none
	Component       bool   // no plugin manages it
	Steps           []Step // what was done, in order; none if nothing was
	Messages        []Message
	Said            []string // the newest lines that its operation printed while it ran

	order int // of the last event of a step that ended
}

// Step is an operation on a resource.
type Step struct {
	Op       string // the engine's name, e.g. create-replacement
	From, To time.Time
	Failed   bool
	Ended    bool // false: the log ends before the operation does
}

// Message is an error or a warning of the engine or a plugin. What may be a secret is hidden.
type Message struct {
	Error bool
	Lines []string
}

// maxSaid is how many lines are kept of what an operation printed.
const maxSaid = 40

// engineEvent is the part of a line of the event log (apitype.EngineEvent) that is read. Inputs and outputs of resources, and the stack's
// configuration, are not among it.
type engineEvent struct {
	Timestamp   int64      `json:"timestamp"` // Unix time, whole seconds
	ResourcePre *stepEvent `json:"resourcePreEvent"`
	ResOutputs  *stepEvent `json:"resOutputsEvent"`
	ResOpFailed *stepEvent `json:"resOpFailedEvent"`
	Diagnostic  *struct {
		URN       string `json:"urn"`
		Prefix    string `json:"prefix"`
		Message   string `json:"message"`
		Severity  string `json:"severity"` // info, info#err, warning or error
		Ephemeral bool   `json:"ephemeral"`
	} `json:"diagnosticEvent"`
	Summary *struct {
		IsPreview bool   `json:"isPreview"`
		Result    string `json:"result"` // succeeded, failed or canceled; "" before version 3.24x of the CLI
	} `json:"summaryEvent"`
	Error *struct {
		Error string `json:"error"`
	} `json:"errorEvent"`
}

// stepEvent is an event about an operation on a resource.
type stepEvent struct {
	Metadata struct {
		Op   string         `json:"op"`
		URN  string         `json:"urn"`
		Type string         `json:"type"`
		Old  *resourceEvent `json:"old"`
		New  *resourceEvent `json:"new"`
	} `json:"metadata"`
}

// resourceEvent is the state of a resource before or after an operation.
type resourceEvent struct {
	Custom bool   `json:"custom"`
	Parent string `json:"parent"`
}

// ReadRun reads the event log that `pulumi up --event-log FILE` has written: a JSON object a line. The last line may be incomplete.
func ReadRun(log io.Reader) (*Run, error) {
	reader, run := &runReader{Run: &Run{}, byURN: map[string]*Resource{}}, bufio.NewReader(log)
	for n := 1; ; n++ {
		line, err := run.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("event log: %w", err)
		}
		last := err != nil
		if text := strings.TrimSpace(string(line)); text != "" {
			var event engineEvent
			switch problem := json.Unmarshal([]byte(text), &event); {
			case problem != nil && last:
				reader.Cut = true
			case problem != nil:
				return nil, fmt.Errorf("event log: line %d is not an event of Pulumi's engine; give the file of pulumi up --event-log", n)
			default:
				reader.read(n, event)
			}
		}
		if last {
			break
		}
	}
	if len(reader.Resources) == 0 {
		return nil, errors.New("event log: has no event about a resource; give the file of pulumi up --event-log")
	}
	reader.end()
	return reader.Run, nil
}

// runReader reads events into a run.
type runReader struct {
	*Run
	byURN map[string]*Resource
}

func (r *runReader) read(order int, event engineEvent) {
	at := time.Unix(event.Timestamp, 0).UTC()
	if r.Began.IsZero() {
		r.Began = at
	}
	r.Ended = at
	switch {
	case event.ResourcePre != nil:
		if op := event.ResourcePre.Metadata.Op; op != "same" {
			resource := r.resource(event.ResourcePre)
			resource.Steps = append(resource.Steps, Step{Op: op, From: at})
			return
		}
		r.resource(event.ResourcePre)
	case event.ResOutputs != nil:
		r.resource(event.ResOutputs).ended(event.ResOutputs.Metadata.Op, at, order, false)
	case event.ResOpFailed != nil:
		r.Failed = true
		r.resource(event.ResOpFailed).ended(event.ResOpFailed.Metadata.Op, at, order, true)
	case event.Diagnostic != nil:
		d := event.Diagnostic
		r.diagnostic(d.URN, d.Severity, d.Prefix+d.Message, d.Ephemeral)
	case event.Error != nil:
		r.Failed = true
		r.Messages = append(r.Messages, message(true, event.Error.Error))
	case event.Summary != nil:
		r.Complete, r.Preview = true, event.Summary.IsPreview
		r.Failed = r.Failed || event.Summary.Result != "" && event.Summary.Result != "succeeded"
	}
}

// resource returns the resource that an event is about.
func (r *runReader) resource(event *stepEvent) *Resource {
	data := event.Metadata
	resource := r.byURN[data.URN]
	if resource == nil {
		resource = &Resource{URN: data.URN, Type: data.Type, Name: data.URN[strings.LastIndex(data.URN, "::")+len("::"):]}
		if strings.LastIndex(data.URN, "::") < 0 {
			resource.Name = data.URN
		}
		r.byURN[data.URN] = resource
		r.Resources = append(r.Resources, resource)
	}
	if state := cmp.Or(data.New, data.Old); state != nil {
		resource.Component, resource.Parent = !state.Custom, state.Parent
	}
	return resource
}

// ended notes that an operation has ended. An event whose operation did not begin is that of a component's outputs.
func (r *Resource) ended(op string, at time.Time, order int, failed bool) {
	open := slices.IndexFunc(r.Steps, func(s Step) bool { return !s.Ended && s.Op == op })
	if open < 0 { // a refresh ends as the operation that it found necessary
		open = slices.IndexFunc(r.Steps, func(s Step) bool { return !s.Ended })
	}
	if open < 0 {
		return
	}
	step := &r.Steps[open]
	step.To, step.Ended, step.Failed = at, true, failed
	r.order = order
}

func (r *runReader) diagnostic(urn, severity, text string, ephemeral bool) {
	resource := r.byURN[urn]
	switch {
	case severity == "error" || severity == "warning":
		m := message(severity == "error", text)
		switch {
		case len(m.Lines) == 0:
		case resource == nil:
			r.Messages = append(r.Messages, m)
		default:
			resource.Messages = append(resource.Messages, m)
		}
	case ephemeral && resource != nil:
		resource.Said = append(resource.Said, secrecy.Lines(plain(text))...)
		resource.Said = resource.Said[max(0, len(resource.Said)-maxSaid):]
	}
}

// end sets the end of what did not end.
func (r *runReader) end() {
	for _, resource := range r.Resources {
		for i := range resource.Steps {
			if step := &resource.Steps[i]; !step.Ended {
				step.To = r.Ended
			}
		}
	}
}

func message(isError bool, text string) Message {
	return Message{Error: isError, Lines: secrecy.Lines(plain(text))}
}

// plain removes the engine's marks of colours, such as <{%fg 1%}>, which a log has that was written with colours.
func plain(text string) string {
	for {
		before, rest, found := strings.Cut(text, "<{%")
		_, after, closed := strings.Cut(rest, "%}>")
		if !found || !closed {
			return text
		}
		text = before + after
	}
}

// From is when the first operation on the resource began.
func (r *Resource) From() time.Time { return r.Steps[0].From }

// To is when the last operation on the resource ended.
func (r *Resource) To() time.Time {
	return slices.MaxFunc(r.Steps, func(a, b Step) int { return a.To.Compare(b.To) }).To
}

// Failed reports whether an operation on the resource failed.
func (r *Resource) Failed() bool {
	return slices.ContainsFunc(r.Steps, func(s Step) bool { return s.Failed })
}

// rank orders resources by how near they are to the cause of a failure.
func (r *Resource) rank() int {
	switch {
	case r.Failed():
		return 0
	case r.Unfinished():
		return 1
	case r.Type == stackType:
		return 3
	}
	return 2
}

// Unfinished reports whether the log ends before an operation on the resource does. A component has no end of its own.
func (r *Resource) Unfinished() bool {
	return !r.Component && slices.ContainsFunc(r.Steps, func(s Step) bool { return !s.Ended })
}
