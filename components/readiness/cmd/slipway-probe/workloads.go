package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/components/probe"
	"github.com/slipway-platform/slipway/components/readiness/health"
	"github.com/slipway-platform/slipway/components/readiness/health/observe"
)

func workloads(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	flags := flag.NewFlagSet("slipway-probe workloads", flag.ContinueOnError)
	flags.SetOutput(stderr)
	spec := new(health.WorkloadsSpec)
	flags.StringVar(&spec.Cluster, "cluster", "by hand", "cluster `name`, for the report")
	kubeconfig := flags.String("kubeconfig", "", "`file` with the cluster's kubeconfig; without it the spec is read from standard input")
	flags.Func("release", "Helm release that must run, as `NAMESPACE/NAME`; once for each", func(text string) error {
		namespace, name, found := strings.Cut(text, "/")
		if !found {
			return errors.New("is no NAMESPACE/NAME")
		}
		spec.Releases = append(spec.Releases, health.Release{Namespace: namespace, Name: name})
		return nil
	})
	timeout := flags.Duration("timeout", health.DefaultTimeout, "longest wait for all of them together")
	stable := flags.Duration("stable-for", health.DefaultStableFor, "how long all must have run without a break")
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
		read, err := health.ParseWorkloadsSpec(stdin)
		if err != nil {
			return exitUsage, err
		}
		return runWorkloads(ctx, read, stdout, stderr)
	}
	spec.Timeout, spec.StableFor = probe.Duration(*timeout), probe.Duration(*stable)
	if err := readFile("--kubeconfig", *kubeconfig, &spec.Kubeconfig); err != nil {
		return exitUsage, err
	}
	if err := spec.Validate(); err != nil {
		return exitUsage, err
	}
	spec.SetDefaults()
	return runWorkloads(ctx, spec, stdout, stderr)
}

func runWorkloads(ctx context.Context, spec *health.WorkloadsSpec, stdout, stderr io.Writer) (int, error) {
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
		Changed: look.Store.Changed(), Timeout: time.Duration(spec.Timeout), StableFor: time.Duration(spec.StableFor),
		Reporter: &health.Progress{To: stderr},
	})
	if end.Outcome != health.Open {
		evidence(ctx, look, end.Results)
	}
	complete(end.Results, map[string]string{"kubectl": " --context " + kube.Context()})
	return conclude(health.NewReport("workloads", spec.Cluster, spec.StableFor, end, calls.Count()), nil, stdout, health.Report.Write)
}
