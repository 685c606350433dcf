package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/components/readiness/health"
	"github.com/slipway-platform/slipway/components/readiness/health/observe"
)

func gate(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	flags := flag.NewFlagSet("slipway-probe gate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var nodes nodeList
	cluster := flags.String("cluster", "by hand", "cluster `name`, for the report")
	kubeconfig := flags.String("kubeconfig", "", "`file` with the cluster's kubeconfig; without it the spec is read from standard input")
	talosconfig := flags.String("talosconfig", "", "`file` with the cluster's talosconfig")
	flags.Var(&nodes, "node", "declared node as `name,role,address`; repeat for each. Without any, the cluster's own list of nodes is taken as declared")
	noCilium := flags.Bool("no-cilium", false, "expect no CNI: nodes need only be registered")
	version := flags.String("cilium-version", "", "`version` the agents must run, e.g. 1.18.7; empty for any")
	timeout := flags.Duration("timeout", health.DefaultTimeout, "longest wait for all conditions together")
	stable := flags.Duration("stable-for", health.DefaultStableFor, "how long all conditions must have held without a break")
	if err := flags.Parse(args); err != nil {
		return exitUsage, err
	}
	if flags.NArg() > 0 {
		return exitUsage, fmt.Errorf("%q: takes no arguments, only flags", flags.Arg(0))
	}
	calls := new(observe.Calls)
	if *kubeconfig == "" {
		if flags.NFlag() > 0 {
			return exitUsage, errors.New("--kubeconfig: is missing; with any flag the spec is made from flags alone")
		}
		spec, err := health.ParseGateSpec(stdin)
		if err != nil {
			return exitUsage, err
		}
		return runGate(ctx, spec, calls, stdout, stderr)
	}
	spec := &health.GateSpec{Cluster: *cluster, Nodes: nodes, Timeout: health.Duration(*timeout), StableFor: health.Duration(*stable)}
	if !*noCilium {
		spec.Cilium = &health.Cilium{Version: *version}
	}
	if err := errors.Join(readFile("--kubeconfig", *kubeconfig, &spec.Kubeconfig), readFile("--talosconfig", *talosconfig, &spec.Talosconfig)); err != nil {
		return exitUsage, err
	}
	if len(spec.Nodes) == 0 {
		discovered, err := discoverNodes(ctx, spec, calls)
		if err != nil {
			return exitUnhealthy, fmt.Errorf("cluster's nodes: %w; declare them with --node", err)
		}
		fmt.Fprintf(stderr, "taking the %d nodes that are registered as the declared ones: a node that never joined is not missed\n", len(discovered))
		spec.Nodes = discovered
	}
	if err := spec.Validate(); err != nil {
		return exitUsage, err
	}
	spec.SetDefaults()
	return runGate(ctx, spec, calls, stdout, stderr)
}

func runGate(ctx context.Context, spec *health.GateSpec, calls *observe.Calls, stdout, stderr io.Writer) (int, error) {
	kube, err := observe.NewKube([]byte(spec.Kubeconfig), calls)
	if err != nil {
		return exitUsage, err
	}
	talos, err := observe.NewTalos(ctx, []byte(spec.Talosconfig), calls)
	if err != nil {
		return exitUsage, err
	}
	store, checks := observe.NewStore[health.Cluster](), health.GateChecks(spec)
	end := watchWhile(ctx, func(ctx context.Context) { observe.Cluster(ctx, spec, kube, talos, store) }, health.Wait{
		Evaluate: func() (results []health.Result) {
			store.Read(func(seen *health.Cluster) { results = health.Evaluate(checks, seen) })
			return results
		},
		Changed: store.Changed(), Timeout: time.Duration(spec.Timeout), StableFor: time.Duration(spec.StableFor),
		Reporter: &health.Progress{To: stderr},
	})
	return conclude(health.NewReport("gate", spec.Cluster, spec.StableFor, end, calls.Count()), talos.Close(), stdout)
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

// conclude writes the report and makes the exit code of it.
func conclude(report health.Report, closing error, stdout io.Writer) (int, error) {
	if err := errors.Join(report.Write(stdout), closing); err != nil {
		return exitUnhealthy, err
	}
	if report.Outcome == health.Open {
		return exitOpen, nil
	}
	return exitUnhealthy, fmt.Errorf("%s: %s", report.Cluster, report.Outcome)
}

func discoverNodes(ctx context.Context, spec *health.GateSpec, calls *observe.Calls) ([]health.Node, error) {
	kube, err := observe.NewKube([]byte(spec.Kubeconfig), calls)
	if err != nil {
		return nil, err
	}
	return kube.Nodes(ctx)
}

// nodeList is the repeated flag --node.
type nodeList []health.Node

func (l *nodeList) String() string { return "" }

func (l *nodeList) Set(text string) error {
	parts := strings.Split(text, ",")
	if len(parts) != 3 {
		return errors.New("is not name,role,address, as in infra-cp-1,controlplane,10.25.11.11")
	}
	*l = append(*l, health.Node{Name: parts[0], Role: health.Role(parts[1]), Address: parts[2]})
	return nil
}

func readFile(flagName, path string, into *string) error {
	if path == "" {
		return fmt.Errorf("%s: is missing; give the file", flagName)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%s: %w", flagName, err)
	}
	*into = string(content)
	return nil
}
