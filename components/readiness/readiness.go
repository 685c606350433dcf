// Package readiness provides the gate between the creation of a cluster and the installation of everything on it. What waits for
// the gate starts only after the probe has found the cluster healthy; that resources exist is not enough.
package readiness

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/pulumi/pulumi-command/sdk/go/command/local"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumix"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/components/internal/step"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/probe"
)

// typeReadinessGate is part of the state: a rename needs Aliases.
const typeReadinessGate = "slipway:readiness:ReadinessGate"

// ReadinessGateArgs are the arguments of a ReadinessGate.
type ReadinessGateArgs struct {
	component.Steps

	Talosconfig pulumi.StringInput      // talosconfig whose endpoints are the control planes, YAML; secret; from TalosCluster
	Nodes       []gate.Machine          // the declared nodes that the gate waits for
	Others      []gate.Machine          // declared workers that join after this gate, which does not wait for them; none by default
	Network     *gate.Network           // declared pod and service ranges, which those in use are compared with; nil compares none
	Versions    *gate.Versions          // declared versions, which those that run are compared with; nil compares none
	Installer   pulumi.StringInput      // image of the declared Talos version, for the report; from TalosCluster; nil if Versions is
	Services    []string                // Talos services that every node must have beside its own, e.g. ext-qemu-guest-agent; none by default
	Cilium      *gate.Cilium            // expected state of Cilium; nil means that no CNI is expected yet
	Backup      *gate.Backup            // snapshots of etcd by a schedule, with the bucket's keys, which are secret; nil means none
	Checks      []cluster.Check         // that the stack file declares; none by default
	Verifies    map[string]pulumi.Input // more inputs, e.g. versions or hashes of values, after whose change the gate runs again; no secrets
	Secrets     map[string]pulumi.Input // more such inputs, which are secret in the state, e.g. hashes of secrets; none by default
	Machines    []pulumi.Resource       // the nodes' machines: when one is replaced, the gate runs again
	DependsOn   []pulumi.Resource       // leaves that must exist before the probe starts, e.g. Cilium's release
	Timeout     time.Duration           // longest wait for all checks together; required
	Approve     bool                    // approves the certificates that the kubelets of Nodes and Others ask for; false by default
}

// ReadinessGate is a component whose probe succeeds only if the cluster, or a part of it, is healthy.
type ReadinessGate struct {
	pulumi.ResourceState

	// Report is the probe's report, one line of JSON (health.Report); it contains no secret.
	Report pulumi.StringOutput `pulumi:"report"`
	// Spec is the state that the probe expects, as JSON without credentials: the probe reads it by --spec.
	Spec pulumi.StringOutput `pulumi:"spec"`

	leaves []pulumi.Resource
}

// NewReadinessGate registers the gate. Its probe runs on create, and again when the nodes, the credentials or anything in Verifies
// or Secrets changes, or a machine is replaced; never in a preview. It changes nothing in the cluster, unless
// Approve is set.
func NewReadinessGate(ctx *pulumi.Context, name string, args *ReadinessGateArgs, opts ...pulumi.ResourceOption) (*ReadinessGate, error) {
	g := &ReadinessGate{}
	if err := component.Register(ctx, typeReadinessGate, name, args.validate(), nil, g, opts...); err != nil {
		return nil, err
	}
	probe, err := step.New(ctx, name+"-probe", step.Args{
		Run: step.Run{
			Subcommand: "gate", Spec: args.spec(), Timeout: args.Timeout, Provider: args.CommandProvider, DependsOn: args.DependsOn,
		},
		Triggers: triggers(args.Verifies), SecretTriggers: triggers(args.Secrets), ReplaceWith: args.Machines,
	}, g)
	if err != nil {
		return nil, err
	}
	return g, g.complete(ctx, probe, args.public())
}

// complete sets the gate's outputs.
func (g *ReadinessGate) complete(ctx *pulumi.Context, probe *local.Command, public pulumi.StringOutput) error {
	g.Report, g.Spec, g.leaves = step.Report(probe), public, []pulumi.Resource{probe}
	return ctx.RegisterResourceOutputs(g, pulumi.Map{"report": g.Report, "spec": g.Spec})
}

// ClusterUID returns the identity of the Kubernetes cluster that the gate vouched for. It changes only when etcd was bootstrapped again.
// It is null if the report has none, as those of older versions.
func (g *ReadinessGate) ClusterUID() pulumi.Output {
	return g.Report.ApplyT(func(line string) (any, error) {
		var report health.Report
		if err := json.Unmarshal([]byte(line), &report); err != nil || report.UID == "" {
			return nil, err
		}
		return report.UID, nil
	})
}

// Leaves returns the resource that others wait for: the probe, which ends once the gate is open.
func (g *ReadinessGate) Leaves() []pulumi.Resource { return slices.Clone(g.leaves) }

func (a *ReadinessGateArgs) validate() error {
	if a == nil {
		return errors.New("args: are missing; give the cluster's name, credentials and nodes")
	}
	problems := []error{a.Steps.Validate()}
	if a.Talosconfig == nil {
		problems = append(problems, errors.New("talosconfig: is missing; pass TalosCluster's"))
	}
	if a.Timeout == 0 { // a negative one is a problem of the spec
		problems = append(problems, errors.New("timeout: is missing; pass a duration such as 10m"))
	}
	_, err := health.Public(a.declared())
	return errors.Join(append(problems, err)...)
}

// declared returns the spec without credentials.
func (a *ReadinessGateArgs) declared() *gate.Spec {
	return &gate.Spec{
		Target: a.Target("", a.Timeout),
		Nodes:  a.Nodes, Others: a.Others, Network: a.Network, Services: a.Services, Versions: a.Versions, Cilium: a.Cilium,
		Backup: a.Backup, Checks: a.Checks,
	}
}

// installed returns the spec without credentials, with the installer's image.
func (a *ReadinessGateArgs) installed(image string) *gate.Spec {
	spec := a.declared()
	if a.Versions != nil {
		versions := *a.Versions
		versions.Installer = image
		spec.Versions = &versions
	}
	return spec
}

// installer returns the installer's image; "" if there is none.
func (a *ReadinessGateArgs) installer() pulumi.StringOutput {
	if a.Installer == nil {
		return pulumi.String("").ToStringOutput()
	}
	return a.Installer.ToStringOutput()
}

// public returns the spec without credentials.
func (a *ReadinessGateArgs) public() pulumi.StringOutput {
	return a.installer().ApplyT(func(image string) (string, error) { return health.Public(a.installed(image)) }).(pulumi.StringOutput)
}

// spec returns the probe's standard input, which contains the credentials.
func (a *ReadinessGateArgs) spec() pulumi.StringOutput {
	encode := func(kubeconfig, talosconfig, image string) (string, error) {
		spec := a.installed(image)
		spec.Kubeconfig, spec.Talosconfig, spec.Approve = kubeconfig, talosconfig, a.Approve
		return probe.Encode(spec)
	}
	encoded := pulumix.Apply3Err(a.Kubeconfig.ToStringOutput(), a.Talosconfig.ToStringOutput(), a.installer(), encode)
	return pulumix.Cast[pulumi.StringOutput](encoded)
}

// triggers returns inputs in the order of their keys, which does not change by itself.
func triggers(inputs map[string]pulumi.Input) pulumi.Array {
	var triggers pulumi.Array
	for _, key := range slices.Sorted(maps.Keys(inputs)) {
		triggers = append(triggers, pulumi.Map{key: inputs[key]})
	}
	return triggers
}
