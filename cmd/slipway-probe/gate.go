package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/observe"
	"github.com/slipway-platform/slipway/internal/picture"
	"github.com/slipway-platform/slipway/internal/probe"
)

const gateUsage = `usage: slipway-probe gate --kubeconfig FILE --talosconfig FILE [--spec FILE | --node … ] [flags]
       slipway-probe gate <SPEC

Waits until a cluster is as declared and healthy, and prints what is missing. It changes nothing.

What is declared comes from --spec: the stack's output gateSpec, which holds no secret,
    pulumi stack output gateSpec --stack infra >gate.json
or from --node, --cilium-version and so on. Without any of them the registered nodes are taken as declared.
Without --kubeconfig the whole spec, credentials included, is read from standard input.

`

func runGate(ctx context.Context, c call) (err error) {
	spec := new(gate.Spec)
	flags := newWaitFlags(c, &spec.Target)
	declared := newDeclaredFlags(flags)
	if err := flags.read(spec, func(kubeconfig string) error { return declared.declare(ctx, spec, kubeconfig) }); err != nil {
		return err
	}
	kube, err := flags.kube(spec.Kubeconfig)
	if err != nil {
		return err
	}
	talos, err := observe.NewTalos(ctx, []byte(spec.Talosconfig), flags.calls)
	if err != nil {
		return usageError{err}
	}
	defer func() { err = errors.Join(err, talos.Close()) }()
	flags.output.declared = picture.Cluster{Gate: spec}
	observed := observe.NewGate(spec, kube, talos)
	report, end := flags.wait(ctx, observed, observed.Confirm, map[string]string{
		"kubectl":  toolFlags("--kubeconfig", flags.kubeconfig, kube.Context),
		"talosctl": toolFlags("--talosconfig", declared.talosconfig, talos.Context()),
	})
	if report.Outcome == health.Open {
		if report.UID, err = kube.ClusterUID(ctx); err != nil {
			return err
		}
	}
	return flags.output.write(report, end, c)
}

// declaredFlags are the flags that declare a cluster.
type declaredFlags struct {
	*waitFlags
	talosconfig, spec, version string
	nodes                      []gate.Machine
	network                    gate.Network
	noCilium                   bool
}

func newDeclaredFlags(flags *waitFlags) *declaredFlags {
	d := &declaredFlags{waitFlags: flags}
	flags.StringVar(&d.talosconfig, "talosconfig", "", "`file` with the cluster's talosconfig")
	flags.StringVar(&d.spec, "spec", "", "`file` with what is declared, as JSON: the stack's output gateSpec")
	flags.Func("node", "declared node as `name,role,address[,address6]`; once for each. Without any, and without --spec, "+
		"the registered nodes are taken as declared", d.addNode)
	flags.Func("pod-cidr", "declared `range` of the pods, IPv4 first; twice for IPv6. Without any, no ranges are compared",
		appendTo(&d.network.PodCIDRs))
	flags.Func("service-cidr", "declared `range` of the services, likewise", appendTo(&d.network.ServiceCIDRs))
	flags.BoolVar(&d.noCilium, "no-cilium", false, "expect no CNI: nodes need only be registered")
	flags.StringVar(&d.version, "cilium-version", "", "`version` the agents must run, e.g. 1.18.7; empty for any")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), gateUsage)
		flags.PrintDefaults()
	}
	return d
}

func (d *declaredFlags) addNode(text string) error {
	parts := strings.Split(text, ",")
	if len(parts) < 3 || len(parts) > 4 {
		return errors.New("is not name,role,address, as in infra-cp-1,controlplane,10.25.11.11")
	}
	node := gate.Machine{Name: parts[0], Role: cluster.Role(parts[1]), Address: parts[2]}
	if len(parts) == 4 {
		node.Address6 = parts[3]
	}
	d.nodes = append(d.nodes, node)
	return nil
}

func appendTo(list *[]string) func(string) error {
	return func(text string) error {
		*list = append(*list, text)
		return nil
	}
}

// declare sets what is declared and the talosconfig.
func (d *declaredFlags) declare(ctx context.Context, spec *gate.Spec, kubeconfig string) error {
	hasNetwork := len(d.network.PodCIDRs)+len(d.network.ServiceCIDRs) > 0
	switch {
	case d.spec != "" && (len(d.nodes) > 0 || hasNetwork || d.noCilium || d.version != ""):
		return usageError{errors.New("--spec: declares everything; " +
			"leave out --node, --pod-cidr, --service-cidr, --no-cilium and --cilium-version")}
	case d.spec != "":
		if err := decodeFile("--spec", d.spec, spec); err != nil {
			return err
		}
	default:
		spec.Nodes = d.nodes
		if hasNetwork {
			spec.Network = &d.network
		}
		if !d.noCilium {
			spec.Cilium = &gate.Cilium{Version: d.version}
		}
	}
	var err error
	if spec.Talosconfig, err = readFile("--talosconfig", d.talosconfig); err != nil || len(spec.Nodes) > 0 {
		return err
	}
	return d.discover(ctx, spec, kubeconfig)
}

// discover declares the registered nodes.
func (d *declaredFlags) discover(ctx context.Context, spec *gate.Spec, kubeconfig string) error {
	kube, err := d.kube(kubeconfig)
	if err != nil {
		return err
	}
	if spec.Nodes, err = kube.Nodes(ctx); err != nil {
		return fmt.Errorf("cluster's nodes: %w; declare them with --spec or --node", err)
	}
	fmt.Fprintf(d.Output(), "taking the %d registered nodes as declared: a node that never joined is not missed\n", len(spec.Nodes))
	return nil
}

func decodeFile(flagName, path string, spec probe.Spec) error {
	file, err := os.Open(path)
	if err != nil {
		return usageError{fmt.Errorf("%s: %w", flagName, err)}
	}
	defer file.Close()
	if err := probe.Decode(file, spec); err != nil {
		return usageError{fmt.Errorf("%s: %s: %w", flagName, path, err)}
	}
	return nil
}
