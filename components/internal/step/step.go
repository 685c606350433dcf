// Package step registers runs of slipway-probe as resources. Resources that depend on a run wait until the probe has succeeded.
package step

import (
	"slices"
	"time"

	"github.com/pulumi/pulumi-command/sdk/go/command/local"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/internal/component"
	"github.com/slipway-platform/slipway/internal/probe"
)

// spareTime is how much longer the resource's timeout is than the probe's. The probe is compiled first, and only its own timeout
// ends it with a report.
const spareTime = 5 * time.Minute

// Run is what each run of the probe needs.
type Run struct {
	Subcommand string                  // subcommand of slipway-probe; required
	Spec       pulumi.StringInput      // standard input of the probe; it contains credentials, so it is made secret; required
	Timeout    time.Duration           // timeout of the probe; required
	Provider   pulumi.ProviderResource // of the command package; required
	DependsOn  []pulumi.Resource       // resources that must exist before the probe starts, or while it runs at a deletion

	// DeletedWith is the resource whose deletion includes that of the run: then nothing runs. Optional.
	DeletedWith pulumi.Resource
}

// command returns the command line of the run.
func (r Run) command() pulumi.StringPtrInput {
	return pulumi.String(probe.Program + " " + r.Subcommand)
}

// limit returns the timeout of the resource.
func (r Run) limit() string { return (r.Timeout + spareTime).String() }

// register registers a command as a child of parent, with the spec as its standard input.
func (r Run) register(
	ctx *pulumi.Context, name string, command *local.CommandArgs, limits *pulumi.CustomTimeouts, parent pulumi.Resource,
	own ...pulumi.ResourceOption,
) (*local.Command, error) {
	command.Stdin = pulumi.ToSecret(r.Spec).(pulumi.StringOutput)
	command.Logging = local.LoggingStderr // the Info column shows sentences, not the report on standard output
	if command.AddPreviousOutputInEnv == nil {
		command.AddPreviousOutputInEnv = pulumi.Bool(false)
	}
	if r.DeletedWith != nil {
		own = append(own, pulumi.DeletedWith(r.DeletedWith))
	}
	return local.NewCommand(ctx, name, command, component.Child(parent, r.Provider, pulumi.DependsOn(r.DependsOn),
		pulumi.AdditionalSecretOutputs([]string{"stdin"}), pulumi.Timeouts(limits), pulumi.Composite(own...)))
}

// Args are the arguments of New. A replacement of DeletedWith makes the probe run again.
type Args struct {
	Run

	Again    string       // subcommand with flags for a run after one that succeeded; "" means Subcommand
	Triggers pulumi.Array // more values after whose change the probe runs again; a preview shows them; no secrets

	// SecretTriggers are more such values, which New makes secret; optional. A checksum of a secret belongs here, because a short
	// secret can be guessed from it. They come after Triggers.
	SecretTriggers pulumi.Array

	// ReplaceWith lists resources after whose replacement the probe runs again; optional.
	ReplaceWith []pulumi.Resource

	Before *pulumi.ResourceHook // runs before the probe; its error is that of the step; optional
}

// New registers a run of the probe as a child of parent. The probe runs on create and when the spec or a trigger changes, never
// in a preview.
//
// Without Again, a run for a changed trigger that failed is repeated even if the change is taken back: Pulumi forgets the former run before
// it begins the new one. So no resource may have a property of the run, because Pulumi would delete it with the former run.
func New(ctx *pulumi.Context, name string, args Args, parent pulumi.Resource) (*local.Command, error) {
	var own []pulumi.ResourceOption
	triggers := slices.Clone(args.Triggers)
	if args.Before != nil {
		before := []*pulumi.ResourceHook{args.Before}
		own = append(own, pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeCreate: before, BeforeUpdate: before}))
	}
	if len(args.SecretTriggers) > 0 {
		own = append(own, pulumi.AdditionalSecretOutputs([]string{"triggers"}))
	}
	for _, trigger := range args.SecretTriggers {
		triggers = append(triggers, pulumi.ToSecret(trigger))
	}
	command := &local.CommandArgs{Create: args.command(), Triggers: triggers}
	if args.Again != "" {
		command.Update = pulumi.String(probe.Program + " " + args.Again)
	} else {
		own = append(own, pulumi.DeleteBeforeReplace(true))
	}
	replaceWith := args.ReplaceWith
	if args.DeletedWith != nil {
		replaceWith = append(slices.Clone(replaceWith), args.DeletedWith)
	}
	if len(replaceWith) > 0 {
		own = append(own, pulumi.ReplaceWith(replaceWith))
	}
	return args.register(ctx, name, command, &pulumi.CustomTimeouts{Create: args.limit(), Update: args.limit()}, parent, own...)
}

// NewChange registers a run of the probe as a child of parent. The probe does not run on create: there the record alone is stored, as the
// standard output. It runs whenever the spec or the record changes, with the standard output of its last successful run in its environment.
// After a run that fails or is killed, the state keeps the old inputs and output, so the next run of `up` runs the probe again. The
// resource is never replaced, because a new one would know of no former run. A preview shows the changes of the record, which contains no
// secrets.
func NewChange(
	ctx *pulumi.Context, name string, run Run, record string, hooks *pulumi.ResourceHookBinding, parent pulumi.Resource,
) (*local.Command, error) {
	return run.register(ctx, name, &local.CommandArgs{
		Create:                 pulumi.String(`printf '%s\n' "$` + RecordVariable + `"`),
		Update:                 run.command(),
		Environment:            pulumi.StringMap{RecordVariable: pulumi.String(record)},
		AddPreviousOutputInEnv: pulumi.Bool(true),
	}, &pulumi.CustomTimeouts{Update: run.limit()}, parent, pulumi.ResourceHooks(hooks))
}

// RecordVariable is the environment variable with the record of a change.
const RecordVariable = "SLIPWAY_RECORD"

// NewRemoval registers a run of the probe as a child of parent. The probe runs when the resource is deleted, and at no other time: with the
// subcommand and the spec of the last run of `up` that had the resource; nothing runs if the subcommand is "". The resource is never
// replaced, which would delete it: each change of its arguments is an update, which runs nothing.
func NewRemoval(ctx *pulumi.Context, name string, run Run, parent pulumi.Resource) (*local.Command, error) {
	command := &local.CommandArgs{}
	if run.Subcommand != "" {
		command.Delete = run.command()
	}
	return run.register(ctx, name, command, &pulumi.CustomTimeouts{Delete: run.limit()}, parent)
}

// Report returns the report of a run, one line of JSON. The provider marks all outputs of a command secret because its input is;
// reports contain no secrets, so this output is not secret.
func Report(run *local.Command) pulumi.StringOutput {
	return pulumi.Unsecret(run.Stdout.ApplyT(probe.ReportLine)).(pulumi.StringOutput)
}
