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

	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/observe"
	"github.com/slipway-platform/slipway/internal/probe"
)

const gateUsage = `usage: slipway-probe gate --kubeconfig FILE --talosconfig FILE [--spec FILE | --node … ] [flags]
       slipway-probe gate <SPEC

Waits until a cluster is as declared and healthy, and says what is missing. It only reads.

What is declared comes from --spec: the stack's output gateSpec, which holds no secret,
    pulumi stack output gateSpec --stack infra >gate.json
or from --node, --cilium-version and so on; without any of them the nodes that are registered are taken as declared.
Without --kubeconfig the whole spec, credentials included, is read from standard input.

`

// gateFlags are what a person gives by hand.
type gateFlags struct {
	cluster, kubeconfig, talosconfig, spec, version string
	nodes                                           nodeList
	podCIDRs, serviceCIDRs                          textList
	noCilium                                        bool
	form                                            form
	timeout, stable                                 time.Duration
}

func gate(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	flags := flag.NewFlagSet("slipway-probe gate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var given gateFlags
	flags.StringVar(&given.cluster, "cluster", "by hand", "cluster `name`, for the report; --spec brings its own")
	flags.StringVar(&given.kubeconfig, "kubeconfig", "", "`file` with the cluster's kubeconfig; without it the spec is read from standard input")
	flags.StringVar(&given.talosconfig, "talosconfig", "", "`file` with the cluster's talosconfig")
	flags.StringVar(&given.spec, "spec", "", "`file` with what is declared, as JSON: the stack's output gateSpec")
	flags.Var(&given.nodes, "node", "declared node as `name,role,address[,address6]`; repeat for each. Without any, and without --spec, the cluster's own list of nodes is taken as declared")
	flags.Var(&given.podCIDRs, "pod-cidr", "declared `range` of the pods, IPv4 first; repeat for IPv6. Without any, no ranges are compared")
	flags.Var(&given.serviceCIDRs, "service-cidr", "declared `range` of the services, likewise")
	flags.BoolVar(&given.noCilium, "no-cilium", false, "expect no CNI: nodes need only be registered")
	flags.StringVar(&given.version, "cilium-version", "", "`version` the agents must run, e.g. 1.18.7; empty for any")
	flags.DurationVar(&given.timeout, "timeout", health.DefaultTimeout, "longest wait for all conditions together")
	flags.DurationVar(&given.stable, "stable-for", health.DefaultStableFor, "how long all conditions must have held without a break")
	given.form.flags(flags)
	flags.Usage = func() {
		fmt.Fprint(stderr, gateUsage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return exitUsage, err
	}
	if flags.NArg() > 0 {
		return exitUsage, fmt.Errorf("%q: takes no arguments, only flags", flags.Arg(0))
	}
	if err := given.form.validate(); err != nil {
		return exitUsage, err
	}
	run := gateRun{calls: new(observe.Calls), form: &given.form, stdout: stdout, stderr: stderr}
	if given.kubeconfig == "" {
		if flags.NFlag() > 0 {
			return exitUsage, errors.New("--kubeconfig: is missing; with any flag the credentials come from files")
		}
		spec := new(health.GateSpec)
		if err := probe.Read(stdin, spec); err != nil {
			return exitUsage, err
		}
		return run.wait(ctx, spec)
	}
	spec, err := given.declared()
	if err != nil {
		return exitUsage, err
	}
	// A person's durations go before those of the stack.
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "timeout":
			spec.Timeout = probe.Duration(given.timeout)
		case "stable-for":
			spec.StableFor = probe.Duration(given.stable)
		}
	})
	if len(spec.Nodes) == 0 {
		if spec.Nodes, err = discoverNodes(ctx, spec, run.calls); err != nil {
			return exitUnhealthy, fmt.Errorf("cluster's nodes: %w; declare them with --spec or --node", err)
		}
		fmt.Fprintf(stderr, "taking the %d nodes that are registered as the declared ones: a node that never joined is not missed\n", len(spec.Nodes))
	}
	if err := probe.Complete(spec); err != nil {
		return exitUsage, err
	}
	run.kubectl, run.talosctl = " --kubeconfig "+given.kubeconfig, " --talosconfig "+given.talosconfig
	return run.wait(ctx, spec)
}

// declared is the spec that the flags make, with the credentials from their files.
func (g *gateFlags) declared() (*health.GateSpec, error) {
	spec := &health.GateSpec{Cluster: g.cluster, Nodes: g.nodes}
	if !g.noCilium {
		spec.Cilium = &health.Cilium{Version: g.version}
	}
	if len(g.podCIDRs)+len(g.serviceCIDRs) > 0 {
		spec.Network = &health.Network{PodCIDRs: g.podCIDRs, ServiceCIDRs: g.serviceCIDRs}
	}
	var problems []error
	if g.spec != "" {
		if len(g.nodes) > 0 || spec.Network != nil || g.noCilium || g.version != "" {
			problems = append(problems, errors.New("--spec: brings the declaration; leave --node, --pod-cidr, --service-cidr, --no-cilium and --cilium-version out"))
		}
		file, err := os.Open(g.spec)
		if err != nil {
			return nil, fmt.Errorf("--spec: %w", err)
		}
		defer file.Close()
		if spec, err = health.ReadGateSpec(file); err != nil {
			return nil, fmt.Errorf("--spec: %s: %w", g.spec, err)
		}
	}
	problems = append(problems, readFile("--kubeconfig", g.kubeconfig, &spec.Kubeconfig), readFile("--talosconfig", g.talosconfig, &spec.Talosconfig))
	return spec, errors.Join(problems...)
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
	if len(parts) < 3 || len(parts) > 4 {
		return errors.New("is not name,role,address, as in infra-cp-1,controlplane,10.25.11.11")
	}
	node := health.Node{Name: parts[0], Role: health.Role(parts[1]), Address: parts[2]}
	if len(parts) == 4 {
		node.Address6 = parts[3]
	}
	*l = append(*l, node)
	return nil
}

// textList is a repeated flag.
type textList []string

func (l *textList) String() string { return "" }

func (l *textList) Set(text string) error {
	*l = append(*l, text)
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
