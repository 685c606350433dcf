package probe

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

// confirmer is an observer that asks again for remembered answers.
type confirmer interface {
	Confirm(context.Context)
}

// wait waits until all conditions hold, and writes the report. complete, if not nil, adds to the report what only a subcommand knows.
func (f *waitFlags) wait(ctx context.Context, o observer, complete func(*health.Report) error) error {
	watching, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.Watch(watching)
	}()
	reporter, drawEnd := f.reporter()
	wait := health.Wait{
		Evaluate: o.Evaluate, Changed: o.Changed(), Once: f.once,
		Timeout: time.Duration(f.target.Timeout), StableFor: time.Duration(f.target.StableFor),
		Reporter: reporter, Heartbeat: f.heartbeat(),
	}
	if c, confirms := o.(confirmer); confirms {
		wait.Confirm = c.Confirm
	}
	end := wait.Run(ctx)
	drawEnd(end)
	stop()
	<-done
	if end.Outcome != health.Open {
		findEvidence(ctx, o, end.Results)
	}
	for i := range end.Results {
		end.Results[i].Command = addFlags(end.Results[i].Command, f.tools)
	}
	report := health.NewReport(f.command.Name(), *f.target, end, f.calls.Count())
	if complete != nil {
		if err := complete(&report); err != nil {
			return err
		}
	}
	return f.output.write(report, end, f.command)
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
