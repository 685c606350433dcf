package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/health/picture"
	"github.com/slipway-platform/slipway/internal/observe"
)

const (
	gateDoes    = "Waits until a cluster is as declared and healthy, and prints what is missing. It changes nothing."
	gateWithout = "or from --node. Without both, the registered nodes are taken as declared.\n"
)

func defineGate(c *cobra.Command) {
	spec := new(gate.Spec)
	flags := newWaitFlags(c, spec, &spec.Target)
	flags.takesSpec("--talosconfig FILE [--spec FILE | --node … ] ", gateDoes, gateWithout)
	talosconfig := flags.String("talosconfig", "", "`file` with the cluster's talosconfig")
	var nodes []gate.Machine
	flags.Func("node", "declared node as `name,role,address[,address6]`; once for each. Without any, and without --spec, "+
		"the registered nodes are taken as declared", func(text string) error {
		node, err := parseNode(text)
		nodes = append(nodes, node)
		return err
	})
	flags.runs(func(ctx context.Context) (err error) {
		if spec.Talosconfig, err = readFile("--talosconfig", *talosconfig); err != nil {
			return err
		}
		return flags.declareNodes(ctx, spec, nodes)
	}, func(ctx context.Context) (err error) {
		talos, err := observe.NewTalos(ctx, spec.Talosconfig, flags.calls)
		if err != nil {
			return command.Wrong(err)
		}
		defer func() { err = errors.Join(err, talos.Close()) }()
		flags.tools["talosctl"] = toolFlags("--talosconfig", *talosconfig, talos.Context())
		flags.output.declared = picture.Cluster{Gate: spec}
		return flags.wait(ctx, observe.NewGate(spec, flags.kube, talos), func(report *health.Report) (err error) {
			if report.Outcome == health.Open {
				report.UID, err = flags.kube.ClusterUID(ctx)
			}
			return err
		})
	})
}

// parseNode reads a value of --node.
func parseNode(text string) (gate.Machine, error) {
	parts := strings.Split(text, ",")
	if len(parts) < 3 || len(parts) > 4 {
		return gate.Machine{}, errors.New("is not name,role,address, as in infra-cp-1,controlplane,10.25.11.11")
	}
	node := gate.Machine{Name: parts[0], Role: cluster.Role(parts[1])}
	err := node.Address.UnmarshalText([]byte(parts[2]))
	if err == nil && len(parts) == 4 {
		err = node.Address6.UnmarshalText([]byte(parts[3]))
	}
	return node, err
}

// declareNodes declares the given nodes if there is no file of --spec; without any, the registered nodes.
func (f *waitFlags) declareNodes(ctx context.Context, spec *gate.Spec, given []gate.Machine) (err error) {
	if f.file != "" {
		if len(given) > 0 {
			return command.Wrong(errors.New("--spec: declares everything; leave out --node"))
		}
		return nil
	}
	spec.Nodes, spec.Cilium = given, &gate.Cilium{}
	if len(given) > 0 {
		return nil
	}
	if spec.Nodes, err = f.kube.Nodes(ctx); err != nil {
		return fmt.Errorf("cluster's nodes: %w; declare them with --spec or --node", err)
	}
	fmt.Fprintf(f.command.ErrOrStderr(), "taking the %d registered nodes as declared: a node that never joined is not missed\n",
		len(spec.Nodes))
	return nil
}
