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

func workloads(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	spec := new(health.WorkloadsSpec)
	flags := newSpecFlags("workloads", stderr, specFields{&spec.Cluster, &spec.Kubeconfig, &spec.Timeout, &spec.StableFor})
	flags.Func("release", "Helm release that must run, as `NAMESPACE/NAME`; once for each", func(text string) error {
		namespace, name, found := strings.Cut(text, "/")
		if !found {
			return errors.New("is no NAMESPACE/NAME")
		}
		spec.Releases = append(spec.Releases, health.Release{Namespace: namespace, Name: name})
		return nil
	})
	if err := flags.read(args, stdin, spec); err != nil {
		return exitUsage, err
	}
	return runWorkloads(ctx, spec, flags, stdout, stderr)
}

func runWorkloads(ctx context.Context, spec *health.WorkloadsSpec, flags *specFlags, stdout, stderr io.Writer) (int, error) {
	calls := new(observe.Calls)
	kube, err := observe.NewKube([]byte(spec.Kubeconfig), calls)
	if err != nil {
		return exitUsage, err
	}
	look, err := observe.NewWorkloads(spec, kube)
	if err != nil {
		return exitUsage, err
	}
	checks := health.WorkloadsChecks(spec)
	end := watchWhile(ctx, look.Watch, health.Wait{
		Evaluate: func() (results []health.Result) {
			look.Store.Read(func(seen *health.Workloads) { results = health.Evaluate(checks, seen) })
			return results
		},
		Once: flags.form.once, Changed: look.Store.Changed(), Timeout: time.Duration(spec.Timeout), StableFor: time.Duration(spec.StableFor),
		Reporter: &health.Progress{To: stderr},
	})
	if end.Outcome != health.Open {
		evidence(ctx, look, end.Results)
	}
	complete(end.Results, map[string]string{"kubectl": flags.kubectl(kube)})
	return flags.form.conclude(health.NewReport("workloads", spec.Cluster, spec.StableFor, end, calls.Count()), end, stdout)
}
