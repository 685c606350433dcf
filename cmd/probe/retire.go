package probe

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/internal/nodes/retire"
)

// retireNodes removes the nodes that the record of the last run has and the spec has not.
func retireNodes(ctx context.Context, spec retire.Spec, progress io.Writer) (retire.Report, error) {
	former, err := retire.ReadRecord(os.Getenv(retire.PreviousOutput))
	if err != nil {
		return retire.Report{}, command.Wrong(fmt.Errorf("%s: %w", retire.PreviousOutput, err))
	}
	return retire.Run(ctx, spec, former, progress)
}
