package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/slipway-platform/slipway/components/probe"
	"github.com/slipway-platform/slipway/components/readiness/health"
	"github.com/slipway-platform/slipway/components/readiness/health/observe"
)

func handover(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	flags := flag.NewFlagSet("slipway-probe handover", flag.ContinueOnError)
	flags.SetOutput(stderr)
	spec := new(health.HandoverSpec)
	flags.StringVar(&spec.Cluster, "cluster", "by hand", "cluster `name`, for the report")
	kubeconfig := flags.String("kubeconfig", "", "`file` with the cluster's kubeconfig; without it the spec is read from standard input")
	flags.StringVar(&spec.Namespace, "namespace", "", "Flux's `namespace`; empty for flux-system")
	flags.StringVar(&spec.Instance, "instance", "", "`name` of the FluxInstance; empty for flux")
	flags.StringVar(&spec.URL, "url", "", "`URL` the source must have; empty for any")
	flags.StringVar(&spec.Ref, "ref", "", "branch or full `reference` the source must follow; empty for any")
	flags.StringVar(&spec.Path, "path", "", "`path` the root Kustomization must apply; empty for any")
	timeout := flags.Duration("timeout", health.DefaultTimeout, "longest wait for all conditions together")
	stable := flags.Duration("stable-for", health.DefaultStableFor, "how long all conditions must have held without a break")
	if err := flags.Parse(args); err != nil {
		return exitUsage, err
	}
	if flags.NArg() > 0 {
		return exitUsage, fmt.Errorf("%q: takes no arguments, only flags", flags.Arg(0))
	}
	if *kubeconfig == "" {
		if flags.NFlag() > 0 {
			return exitUsage, errors.New("--kubeconfig: is missing; with any flag the spec is made from flags alone")
		}
		read, err := health.ParseHandoverSpec(stdin)
		if err != nil {
			return exitUsage, err
		}
		return runHandover(ctx, read, stdout, stderr)
	}
	spec.Timeout, spec.StableFor = probe.Duration(*timeout), probe.Duration(*stable)
	if err := readFile("--kubeconfig", *kubeconfig, &spec.Kubeconfig); err != nil {
		return exitUsage, err
	}
	if err := spec.Validate(); err != nil {
		return exitUsage, err
	}
	spec.SetDefaults()
	return runHandover(ctx, spec, stdout, stderr)
}

func runHandover(ctx context.Context, spec *health.HandoverSpec, stdout, stderr io.Writer) (int, error) {
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
		Changed: store.Changed(), Timeout: time.Duration(spec.Timeout), StableFor: time.Duration(spec.StableFor),
		Reporter: &health.Progress{To: stderr},
	})
	report := health.NewReport("handover", spec.Cluster, spec.StableFor, end, calls.Count())
	store.Read(func(seen *health.Flux) { report.Revision = seen.AppliedRevision(spec) })
	return conclude(report, nil, stdout, health.Report.Write)
}
