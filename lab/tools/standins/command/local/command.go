// Package local holds the resource command:local:Command.
package local

import (
	"context"

	p "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi-go-provider/infer"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Command is a resource that runs commands on this machine when it is created, updated and deleted.
type Command struct{}

var (
	_ infer.CustomResource[CommandArgs, CommandState] = (*Command)(nil)
	_ infer.CustomCheck[CommandArgs]                  = (*Command)(nil)
	_ infer.CustomUpdate[CommandArgs, CommandState]   = (*Command)(nil)
	_ infer.CustomDelete[CommandState]                = (*Command)(nil)
)

// CommandArgs are the inputs, with the SDK's names.
type CommandArgs struct {
	Create      *string            `pulumi:"create,optional"`      // run on create; none: nothing runs
	Update      *string            `pulumi:"update,optional"`      // run on update; none: Create runs again
	Delete      *string            `pulumi:"delete,optional"`      // run on delete; none: nothing runs
	Interpreter *[]string          `pulumi:"interpreter,optional"` // program and arguments that get the command last; none: /bin/sh -c
	Dir         *string            `pulumi:"dir,optional"`         // working directory; none: the engine's
	Environment *map[string]string `pulumi:"environment,optional"` // added to the engine's environment
	Stdin       *string            `pulumi:"stdin,optional"`       // standard input of the command
	Logging     *Logging           `pulumi:"logging,optional"`     // outputs that the Info column shows; none: both

	Triggers               *[]any    `pulumi:"triggers,optional" provider:"replaceOnChanges"` // a change replaces the resource
	AddPreviousOutputInEnv *bool     `pulumi:"addPreviousOutputInEnv,optional"`               // none: true
	AssetPaths             *[]string `pulumi:"assetPaths,optional"`                           // refused
	ArchivePaths           *[]string `pulumi:"archivePaths,optional"`                         // refused
}

// CommandState is what the engine stores.
type CommandState struct {
	CommandArgs
	Stdout string `pulumi:"stdout"` // of the last command, without its last newline
	Stderr string `pulumi:"stderr"` // of the last command, without its last newline
}

// Check refuses inputs that this stand-in does not support, so that a program with them fails in preview.
func (*Command) Check(ctx context.Context, req infer.CheckRequest) (infer.CheckResponse[CommandArgs], error) {
	args, failures, err := infer.DefaultCheck[CommandArgs](ctx, req.NewInputs)
	for name, set := range map[string]bool{"assetPaths": args.AssetPaths != nil, "archivePaths": args.ArchivePaths != nil} {
		if set {
			failures = append(failures, p.CheckFailure{Property: name, Reason: "assets are not modelled by the lab's command plugin"})
		}
	}
	if args.Logging != nil && !args.Logging.valid() {
		failures = append(failures, p.CheckFailure{Property: "logging", Reason: "not one of stdout, stderr, stdoutAndStderr, none"})
	}
	return infer.CheckResponse[CommandArgs]{Inputs: args, Failures: failures}, err
}

// Create runs the create command.
func (*Command) Create(ctx context.Context, req infer.CreateRequest[CommandArgs]) (infer.CreateResponse[CommandState], error) {
	resp := infer.CreateResponse[CommandState]{Output: CommandState{CommandArgs: req.Inputs}}
	id, err := resource.NewUniqueHex(req.Name, 8, 0)
	if err != nil {
		return resp, err
	}
	resp.ID = id
	if req.DryRun || req.Inputs.Create == nil {
		return resp, nil
	}
	return resp, resp.Output.run(ctx, *req.Inputs.Create)
}

// Update runs the update command, or the create command if there is none. It passes the outputs of the previous
// command.
func (*Command) Update(
	ctx context.Context, req infer.UpdateRequest[CommandArgs, CommandState],
) (infer.UpdateResponse[CommandState], error) {
	resp := infer.UpdateResponse[CommandState]{
		Output: CommandState{CommandArgs: req.Inputs, Stdout: req.State.Stdout, Stderr: req.State.Stderr},
	}
	command := req.Inputs.Update
	if command == nil {
		command = req.Inputs.Create
	}
	if req.DryRun || command == nil {
		return resp, nil
	}
	return resp, resp.Output.run(ctx, *command)
}

// Delete runs the delete command with the inputs of the last update.
func (*Command) Delete(ctx context.Context, req infer.DeleteRequest[CommandState]) (infer.DeleteResponse, error) {
	if req.State.Delete == nil {
		return infer.DeleteResponse{}, nil
	}
	return infer.DeleteResponse{}, req.State.run(ctx, *req.State.Delete)
}
