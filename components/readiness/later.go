package readiness

import (
	"errors"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/step"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/probe"
)

// LaterGateArgs are the arguments of a gate that looks at a part of a cluster which the ReadinessGate has found healthy. S is the
// probe's spec.
type LaterGateArgs[S any] struct {
	component.Steps
	component.Lifetime // DependsOn are the leaves of what the gate looks at

	Declared S                       // the declared state, without Target; required
	Verifies map[string]pulumi.Input // more inputs after whose change the gate runs again, e.g. a hash of Cilium's values; no secrets
	Machines []pulumi.Resource       // the nodes' machines: when one is replaced, the gate runs again
	Timeout  time.Duration           // longest wait for all checks together; required
}

// LaterGate is a component whose probe succeeds only if that part of the cluster is as declared.
type LaterGate = ReadinessGate

// newLaterGate registers a gate of a type. Its probe runs on create, and again when what is declared, the credentials or anything in
// Verifies changes, or a machine is replaced; never in a preview.
func newLaterGate[S any, P health.Declared[S]](
	ctx *pulumi.Context, token, subcommand, name string, args *LaterGateArgs[S], opts ...pulumi.ResourceOption,
) (*LaterGate, error) {
	g := &LaterGate{}
	public, problems := public[S, P](args)
	if err := component.Register(ctx, token, name, problems, nil, g, opts...); err != nil {
		return nil, err
	}
	spec := args.Spec(func(kubeconfig string) probe.Spec { return declared[S, P](args, kubeconfig) })
	run, err := step.New(ctx, name+"-probe", step.Args{
		Run: step.Run{
			Subcommand: subcommand, Spec: spec, Timeout: args.Timeout,
			Provider: args.CommandProvider, DependsOn: args.DependsOn, DeletedWith: args.DeletedWith,
		},
		Triggers: triggers(args.Verifies), ReplaceWith: args.Machines,
	}, g)
	if err != nil {
		return nil, err
	}
	return g, g.complete(ctx, run, pulumi.String(public).ToStringOutput())
}

// declared returns the spec with a kubeconfig; "" means none.
func declared[S any, P health.Declared[S]](args *LaterGateArgs[S], kubeconfig string) P {
	spec := args.Declared
	P(&spec).SetTarget(args.Target(kubeconfig, args.Timeout))
	return &spec
}

// public returns the spec without credentials, or every problem of the arguments.
func public[S any, P health.Declared[S]](args *LaterGateArgs[S]) (string, error) {
	if args == nil {
		return "", errors.New("args: are missing; pass LaterGateArgs")
	}
	problems := []error{args.Steps.Validate(), args.Lifetime.Validate()}
	if args.Timeout == 0 { // a negative one is a problem of the spec
		problems = append(problems, errors.New("timeout: is missing; pass a duration such as 10m"))
	}
	text, err := health.Public(declared[S, P](args, ""))
	return text, errors.Join(append(problems, err)...)
}
