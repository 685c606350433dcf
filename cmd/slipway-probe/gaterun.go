package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/observe"
)

// How long the evidence of what failed may take: a person waits for it, and Pulumi gives what it interrupts a few seconds only.
const (
	evidenceFor            = 15 * time.Second
	evidenceForInterrupted = 4 * time.Second
)

// gateRun is one run of the gate.
type gateRun struct {
	calls             *observe.Calls
	form              *form
	kubectl, talosctl string // flags of the commands it proposes; "" means the contexts of the spec's credentials
	stdout, stderr    io.Writer
}

func (r gateRun) wait(ctx context.Context, spec *health.GateSpec) (int, error) {
	kube, err := observe.NewKube([]byte(spec.Kubeconfig), r.calls)
	if err != nil {
		return exitUsage, err
	}
	talos, err := observe.NewTalos(ctx, []byte(spec.Talosconfig), r.calls)
	if err != nil {
		return exitUsage, err
	}
	if r.kubectl == "" {
		r.kubectl, r.talosctl = " --context "+kube.Context(), " --context "+talos.Context()
	}
	look, checks := observe.NewGate(spec, kube, talos), health.GateChecks(spec)
	end := watchWhile(ctx, look.Watch, health.Wait{
		Evaluate: func() (results []health.Result) {
			look.Store.Read(func(seen *health.Cluster) { results = health.Evaluate(checks, seen) })
			return results
		},
		Confirm: look.Confirm, Once: r.form.once,
		Changed: look.Store.Changed(), Timeout: time.Duration(spec.Timeout), StableFor: time.Duration(spec.StableFor),
		Reporter: &health.Progress{To: r.stderr},
	})
	if end.Outcome != health.Open {
		evidence(ctx, look, end.Results)
	}
	complete(end.Results, map[string]string{"kubectl": r.kubectl, "talosctl": r.talosctl})
	report := health.NewReport("gate", spec.Cluster, spec.StableFor, end, r.calls.Count())
	code, err := r.form.conclude(report, end, r.stdout)
	if closing := talos.Close(); closing != nil {
		return exitUnhealthy, errors.Join(err, closing)
	}
	return code, err
}

// evidence looks up what a person would, once the wait is over. What stopped the wait must not stop this at once.
func evidence(ctx context.Context, look interface {
	Answer(context.Context, []health.Result)
}, results []health.Result) {
	limit := evidenceFor
	if ctx.Err() != nil {
		limit = evidenceForInterrupted
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	look.Answer(ctx, results)
}

// complete makes the commands in results such that they can be pasted: each tool gets its flags.
func complete(results []health.Result, flags map[string]string) {
	for i := range results {
		var commands []string
		for command := range strings.SplitSeq(results[i].Command, "; ") {
			for tool, own := range flags {
				if rest, is := strings.CutPrefix(command, tool+" "); is {
					command = tool + own + " " + rest
				}
			}
			commands = append(commands, command)
		}
		results[i].Command = strings.Join(commands, "; ")
	}
}

// watchWhile looks for as long as the wait lasts.
func watchWhile(ctx context.Context, look func(context.Context), wait health.Wait) health.End {
	looking, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		look(looking)
	}()
	end := wait.Run(ctx)
	stop()
	<-done
	return end
}
