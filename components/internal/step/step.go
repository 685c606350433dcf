// Package step registers runs of slipway-probe as resources. Resources that depend on a run wait until the probe has succeeded.
package step

import (
	"slices"
	"time"

	"github.com/pulumi/pulumi-command/sdk/go/command/local"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/internal/probe"
)

// spareTime is how much longer the resource's timeout is than the probe's. The probe is compiled first, and only its own timeout
// ends it with a report.
const spareTime = 5 * time.Minute

// Args are the arguments of New.
type Args struct {
	Subcommand string             // subcommand of slipway-probe; required
	Again      string             // subcommand with flags for a run after one that succeeded; "" means Subcommand
	Spec       pulumi.StringInput // standard input of the probe; it contains credentials, so New makes it secret; required
	Timeout    time.Duration      // timeout of the probe; required
	Triggers   pulumi.Array       // more values after whose change the probe runs again; a preview shows them; no secrets

	// SecretTriggers are more such values, which New makes secret; optional. A checksum of a secret belongs here, because a short
	// secret can be guessed from it. They come after Triggers.
	SecretTriggers pulumi.Array

	Provider  pulumi.ProviderResource // of the command package; nil means the parent's provider
	DependsOn []pulumi.Resource       // resources that must exist before the probe starts
	// ReplaceWith lists resources after whose replacement the probe runs again; optional.
	ReplaceWith []pulumi.Resource
	// DeletedWith is the resource whose deletion includes that of the run, and after whose replacement the probe runs again; optional.
	DeletedWith pulumi.Resource
}

// New registers a run of the probe as a child of parent. The probe runs on create and when the spec or a trigger changes, never
// in a preview.
func New(ctx *pulumi.Context, name string, args Args, parent pulumi.Resource) (*local.Command, error) {
	limit := (args.Timeout + spareTime).String()
	triggers, secretOutputs := slices.Clone(args.Triggers), []string{"stdin"}
	if len(args.SecretTriggers) > 0 {
		secretOutputs = append(secretOutputs, "triggers")
	}
	for _, trigger := range args.SecretTriggers {
		triggers = append(triggers, pulumi.ToSecret(trigger))
	}
	opts := []pulumi.ResourceOption{
		pulumi.Parent(parent), pulumi.DependsOn(args.DependsOn),
		pulumi.AdditionalSecretOutputs(secretOutputs),
		pulumi.Timeouts(&pulumi.CustomTimeouts{Create: limit, Update: limit}),
	}
	if args.Provider != nil {
		opts = append(opts, pulumi.Provider(args.Provider))
	}
	replaceWith := args.ReplaceWith
	if args.DeletedWith != nil {
		opts = append(opts, pulumi.DeletedWith(args.DeletedWith))
		replaceWith = append(slices.Clone(replaceWith), args.DeletedWith)
	}
	if len(replaceWith) > 0 {
		opts = append(opts, pulumi.ReplaceWith(replaceWith))
	}
	var update pulumi.StringPtrInput
	if args.Again != "" {
		update = pulumi.String(probe.Program + " " + args.Again)
	}
	return local.NewCommand(ctx, name, &local.CommandArgs{
		Create:                 pulumi.String(probe.Program + " " + args.Subcommand),
		Update:                 update,
		Stdin:                  pulumi.ToSecret(args.Spec).(pulumi.StringOutput),
		Logging:                local.LoggingStderr, // the Info column shows sentences, not the report on standard output
		AddPreviousOutputInEnv: pulumi.Bool(false),
		Triggers:               triggers,
	}, opts...)
}

// ChangeArgs are the arguments of NewChange.
type ChangeArgs struct {
	Subcommand string                      // subcommand of slipway-probe that runs when an input changes; required
	Spec       pulumi.StringInput          // standard input of the probe; it contains credentials, so NewChange makes it secret; required
	Record     string                      // what the first run leaves as its standard output; a preview shows its changes; no secrets; required
	Timeout    time.Duration               // timeout of the probe; required
	Provider   pulumi.ProviderResource     // of the command package; required
	DependsOn  []pulumi.Resource           // resources that must exist before the probe starts
	Hooks      *pulumi.ResourceHookBinding // optional
}

// NewChange registers a run of the probe as a child of parent. The probe does not run on create: there the record alone is stored. It runs
// whenever the spec or the record changes, with the standard output of its last successful run in its environment. After a run that fails
// or is killed, the state keeps the former inputs and output, so that the next `up` runs it again. The resource is never replaced, because
// a new one would know of no former run.
func NewChange(ctx *pulumi.Context, name string, args ChangeArgs, parent pulumi.Resource) (*local.Command, error) {
	limit := (args.Timeout + spareTime).String()
	opts := []pulumi.ResourceOption{
		pulumi.Parent(parent), pulumi.Provider(args.Provider), pulumi.DependsOn(args.DependsOn),
		pulumi.AdditionalSecretOutputs([]string{"stdin"}),
		pulumi.Timeouts(&pulumi.CustomTimeouts{Update: limit}),
	}
	if args.Hooks != nil {
		opts = append(opts, pulumi.ResourceHooks(args.Hooks))
	}
	return local.NewCommand(ctx, name, &local.CommandArgs{
		Create:                 pulumi.String(`printf '%s\n' "$` + RecordVariable + `"`),
		Update:                 pulumi.String(probe.Program + " " + args.Subcommand),
		Environment:            pulumi.StringMap{RecordVariable: pulumi.String(args.Record)},
		Stdin:                  pulumi.ToSecret(args.Spec).(pulumi.StringOutput),
		Logging:                local.LoggingStderr,
		AddPreviousOutputInEnv: pulumi.Bool(true),
	}, opts...)
}

// RecordVariable is the environment variable with the record of a change.
const RecordVariable = "SLIPWAY_RECORD"

// RemovalArgs are the arguments of NewRemoval.
type RemovalArgs struct {
	Subcommand  string                  // subcommand of slipway-probe that runs when the resource is deleted; "" means that nothing runs
	Spec        pulumi.StringInput      // standard input of the probe; it contains credentials, so NewRemoval makes it secret; required
	Timeout     time.Duration           // timeout of the probe; required
	Provider    pulumi.ProviderResource // of the command package; required
	DependsOn   []pulumi.Resource       // resources that still exist while the probe runs
	DeletedWith pulumi.Resource         // resource with whose deletion the probe does not run; optional
}

// NewRemoval registers a run of the probe as a child of parent. The probe runs when the resource is deleted, and at no other time: with the
// subcommand and the spec of the last `up` that had the resource. The resource is never replaced, because that would delete it: each change
// of its arguments is an update, which runs nothing.
func NewRemoval(ctx *pulumi.Context, name string, args RemovalArgs, parent pulumi.Resource) (*local.Command, error) {
	var command pulumi.StringPtrInput
	if args.Subcommand != "" {
		command = pulumi.String(probe.Program + " " + args.Subcommand)
	}
	opts := []pulumi.ResourceOption{
		pulumi.Parent(parent), pulumi.Provider(args.Provider), pulumi.DependsOn(args.DependsOn),
		pulumi.AdditionalSecretOutputs([]string{"stdin"}),
		pulumi.Timeouts(&pulumi.CustomTimeouts{Delete: (args.Timeout + spareTime).String()}),
	}
	if args.DeletedWith != nil {
		opts = append(opts, pulumi.DeletedWith(args.DeletedWith))
	}
	return local.NewCommand(ctx, name, &local.CommandArgs{
		Delete:                 command,
		Stdin:                  pulumi.ToSecret(args.Spec).(pulumi.StringOutput),
		Logging:                local.LoggingStderr,
		AddPreviousOutputInEnv: pulumi.Bool(false),
	}, opts...)
}

// Report returns the report of a run, one line of JSON. The provider marks all outputs of a command secret because its input is;
// reports contain no secrets, so this output is not secret.
func Report(run *local.Command) pulumi.StringOutput {
	return pulumi.Unsecret(run.Stdout.ApplyT(probe.ReportLine)).(pulumi.StringOutput)
}
