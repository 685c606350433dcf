// Package step makes runs of slipway-probe resources: points in the graph that are passed once the probe has ended well.
package step

import (
	"time"

	"github.com/pulumi/pulumi-command/sdk/go/command/local"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/internal/probe"
)

// Program is the command line of slipway-probe, from the project's folder; its subcommand follows.
const Program = "go run ./cmd/slipway-probe"

// spareTime is what the resource may take longer than the probe: the probe is built first, and its own deadline has to
// be the one that ends it, for only then is there a report.
const spareTime = 5 * time.Minute

// Args say what the probe does.
type Args struct {
	Subcommand string             // required
	Spec       pulumi.StringInput // what it reads on standard input; it holds credentials and is made secret; required
	Timeout    time.Duration      // the probe's own; required
	Triggers   pulumi.Array       // what it vouches for beside the spec: a change runs it again, and shows in a preview; no secrets

	Provider  pulumi.ProviderResource // of the command package; nil means the one that the parent brings
	DependsOn []pulumi.Resource       // what must be there before it starts
	// DeletedWith takes the resource along when it is deleted; optional.
	DeletedWith pulumi.Resource
}

// New registers a run as a child of parent. It happens on create and when the specification or a trigger changes, never in
// a preview.
func New(ctx *pulumi.Context, name string, args Args, parent pulumi.Resource) (*local.Command, error) {
	limit := (args.Timeout + spareTime).String()
	opts := []pulumi.ResourceOption{
		pulumi.Parent(parent), pulumi.DependsOn(args.DependsOn),
		pulumi.AdditionalSecretOutputs([]string{"stdin"}),
		pulumi.Timeouts(&pulumi.CustomTimeouts{Create: limit, Update: limit}),
	}
	if args.Provider != nil {
		opts = append(opts, pulumi.Provider(args.Provider))
	}
	if args.DeletedWith != nil {
		opts = append(opts, pulumi.DeletedWith(args.DeletedWith))
	}
	return local.NewCommand(ctx, name, &local.CommandArgs{
		Create:                 pulumi.String(Program + " " + args.Subcommand),
		Stdin:                  pulumi.ToSecret(args.Spec).(pulumi.StringOutput),
		AddPreviousOutputInEnv: pulumi.Bool(false),
		Triggers:               args.Triggers,
	}, opts...)
}

// Report is the report of a run, one line of JSON. The provider marks all outputs of a command secret because its input is;
// reports are written without any.
func Report(run *local.Command) pulumi.StringOutput {
	return pulumi.Unsecret(run.Stdout.ApplyT(probe.ReportLine)).(pulumi.StringOutput)
}
