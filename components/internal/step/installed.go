package step

import (
	"strings"

	"github.com/pulumi/pulumi-command/sdk/go/command/local"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/internal/probe"
)

// Installed is a transformation that makes each run of the probe use the installed binary. Nothing else of a command changes.
func Installed(args *pulumi.ResourceTransformationArgs) *pulumi.ResourceTransformationResult {
	command, is := args.Props.(*local.CommandArgs)
	if !is {
		return nil
	}
	changed := *command
	for _, line := range []*pulumi.StringPtrInput{&changed.Create, &changed.Update, &changed.Delete} {
		if text, is := (*line).(pulumi.String); is {
			if rest, runs := strings.CutPrefix(string(text), probe.Program+" "); runs {
				*line = pulumi.String(probe.Installed + " " + rest)
			}
		}
	}
	return &pulumi.ResourceTransformationResult{Props: &changed, Opts: args.Opts}
}
