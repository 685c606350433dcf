package main

import (
	"context"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/health"
)

// How long the search for evidence may take. After an interrupt it is less: Pulumi kills what it interrupts after a few seconds.
const (
	evidenceTimeout            = 15 * time.Second
	evidenceTimeoutInterrupted = 4 * time.Second
)

// observer reads a cluster and judges it.
type observer interface {
	Watch(context.Context)
	Changed() <-chan struct{}
	Evaluate() []health.Result
	Answer(context.Context, []health.Result)
}

// wait waits until all conditions hold, and returns the report. tools are the flags for the commands in the report, by tool.
func (f *waitFlags) wait(
	ctx context.Context, o observer, confirm func(context.Context), tools map[string]string,
) (health.Report, health.End) {
	watching, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.Watch(watching)
	}()
	reporter, drawEnd := f.reporter()
	end := health.Wait{
		Evaluate: o.Evaluate, Changed: o.Changed(), Confirm: confirm, Once: f.once,
		Timeout: time.Duration(f.target.Timeout), StableFor: time.Duration(f.target.StableFor),
		Reporter: reporter, Heartbeat: f.heartbeat(),
	}.Run(ctx)
	drawEnd(end)
	stop()
	<-done
	if end.Outcome != health.Open {
		findEvidence(ctx, o, end.Results)
	}
	for i := range end.Results {
		end.Results[i].Command = addFlags(end.Results[i].Command, tools)
	}
	return health.NewReport(f.call.subcommand, *f.target, end, f.calls.Count()), end
}

// findEvidence looks up what failed results ask for. It does so although ctx may have ended.
func findEvidence(ctx context.Context, o observer, results []health.Result) {
	limit := evidenceTimeout
	if ctx.Err() != nil {
		limit = evidenceTimeoutInterrupted
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	o.Answer(ctx, results)
}

// addFlags adds each tool's flags to the commands in text, so that they can be pasted.
func addFlags(text string, tools map[string]string) string {
	commands := strings.Split(text, "; ")
	for i, command := range commands {
		tool, rest, _ := strings.Cut(command, " ")
		if flags, known := tools[tool]; known {
			commands[i] = tool + flags + " " + rest
		}
	}
	return strings.Join(commands, "; ")
}
