package main

import (
	"context"
	"io"
	"time"

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/observe"
)

func handover(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	spec := new(health.HandoverSpec)
	flags := newSpecFlags("handover", stderr, specFields{&spec.Cluster, &spec.Kubeconfig, &spec.Timeout, &spec.StableFor})
	flags.StringVar(&spec.Namespace, "namespace", "", "Flux's `namespace`; empty for flux-system")
	flags.StringVar(&spec.Instance, "instance", "", "`name` of the FluxInstance; empty for flux")
	flags.StringVar(&spec.URL, "url", "", "`URL` the source must have; empty for any")
	flags.StringVar(&spec.Ref, "ref", "", "branch or full `reference` the source must follow; empty for any")
	flags.StringVar(&spec.Path, "path", "", "`path` the root Kustomization must apply; empty for any")
	if err := flags.read(args, stdin, spec); err != nil {
		return exitUsage, err
	}
	return runHandover(ctx, spec, &flags.form, stdout, stderr)
}

func runHandover(ctx context.Context, spec *health.HandoverSpec, form *form, stdout, stderr io.Writer) (int, error) {
	calls := new(observe.Calls)
	kube, err := observe.NewKube([]byte(spec.Kubeconfig), calls)
	if err != nil {
		return exitUsage, err
	}
	store, checks := observe.NewStore[health.Flux](), health.HandoverChecks(spec)
	end := watchWhile(ctx, func(ctx context.Context) { observe.Flux(ctx, kube, store) }, health.Wait{
		Evaluate: func() (results []health.Result) {
			store.Read(func(seen *health.Flux) { results = health.Evaluate(checks, seen) })
			return results
		},
		Once: form.once, Changed: store.Changed(), Timeout: time.Duration(spec.Timeout), StableFor: time.Duration(spec.StableFor),
		Reporter: &health.Progress{To: stderr},
	})
	report := health.NewReport("handover", spec.Cluster, spec.StableFor, end, calls.Count())
	store.Read(func(seen *health.Flux) { report.Revision = seen.AppliedRevision(spec) })
	return form.conclude(report, end, stdout)
}
