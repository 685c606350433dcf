package readiness

import (
	"errors"
	"slices"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/internal/component"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/storage"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/internal/step"
)

// typeStorageGate is part of the state: a rename needs Aliases.
const typeStorageGate = "slipway:readiness:StorageGate"

// StorageGateArgs are the arguments of a StorageGate.
type StorageGateArgs struct {
	component.Steps
	component.Lifetime // DependsOn are the leaves of what installs the storage

	Storage  storage.Spec            // the declared storage, without Target; required
	Verifies map[string]pulumi.Input // more inputs after whose change the gate runs again; no secrets
	Machines []pulumi.Resource       // the nodes' machines: when one is replaced, the gate runs again
	Timeout  time.Duration           // longest wait for all checks together; required
}

// StorageGate is a component whose probe succeeds only if pods get volumes of every declared class.
type StorageGate struct {
	pulumi.ResourceState

	// Report is the probe's report, one line of JSON (health.Report); it contains no secret.
	Report pulumi.StringOutput `pulumi:"report"`
	// Spec is the state that the probe expects, as JSON without credentials: `slipway-probe storage --spec` reads it.
	Spec pulumi.StringOutput `pulumi:"spec"`

	leaves []pulumi.Resource
}

// NewStorageGate registers the gate. Its probe runs on create, and again when the classes, drivers or nodes, the credentials or
// anything in Verifies changes, or a machine is replaced; never in a preview. It removes the volumes that it creates.
func NewStorageGate(ctx *pulumi.Context, name string, args *StorageGateArgs, opts ...pulumi.ResourceOption) (*StorageGate, error) {
	g := &StorageGate{}
	public, problems := args.public()
	if err := component.Register(ctx, typeStorageGate, name, problems, nil, g, opts...); err != nil {
		return nil, err
	}
	run, err := step.New(ctx, name+"-probe", step.Args{
		Subcommand: "storage", Spec: args.spec(), Timeout: args.Timeout, Triggers: triggers(args.Verifies),
		Provider: args.CommandProvider, DependsOn: args.DependsOn, ReplaceWith: args.Machines, DeletedWith: args.DeletedWith,
	}, g)
	if err != nil {
		return nil, err
	}
	g.Report, g.Spec, g.leaves = step.Report(run), pulumi.String(public).ToStringOutput(), []pulumi.Resource{run}
	return g, ctx.RegisterResourceOutputs(g, pulumi.Map{"report": g.Report, "spec": g.Spec})
}

// Leaves returns the resource that others wait for: the probe, which ends once a volume of each class has worked.
func (g *StorageGate) Leaves() []pulumi.Resource { return slices.Clone(g.leaves) }

// declared returns the spec with a kubeconfig; "" means none.
func (a *StorageGateArgs) declared(kubeconfig string) *storage.Spec {
	spec := a.Storage
	spec.Target = health.Target{Cluster: a.Name, Kubeconfig: kubeconfig, Timeout: probe.Duration(a.Timeout)}
	return &spec
}

// public returns the spec without credentials, or every problem of the arguments.
func (a *StorageGateArgs) public() (string, error) {
	if a == nil {
		return "", errors.New("args: are missing; pass StorageGateArgs")
	}
	problems := []error{a.Steps.Validate(), a.Lifetime.Validate()}
	if a.Timeout == 0 { // a negative one is a problem of the spec
		problems = append(problems, errors.New("timeout: is missing; pass a duration such as 10m"))
	}
	public, err := a.declared("").Public()
	return public, errors.Join(append(problems, err)...)
}

// spec returns the probe's standard input, which contains the kubeconfig.
func (a *StorageGateArgs) spec() pulumi.StringOutput {
	return a.Kubeconfig.ToStringOutput().ApplyT(func(kubeconfig string) (string, error) {
		return probe.Encode(a.declared(kubeconfig))
	}).(pulumi.StringOutput)
}
