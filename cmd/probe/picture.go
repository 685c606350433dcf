package probe

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/internal/health/mesh"
	"github.com/slipway-platform/slipway/internal/health/picture"
	"github.com/slipway-platform/slipway/stacks/contract"
)

const pictureDoes = `Writes what a pulumi up, refresh or destroy did as one HTML page, to standard output. It contacts nothing. The files
come from
    PULUMI_DEBUG_COMMANDS=true pulumi up --stack infra --event-log events.json
    pulumi stack export --stack infra >state.json
Without --state, the critical path, the gates and the nodes are missing. The page has no inputs and outputs of resources.`

func definePicture(c *cobra.Command) {
	c.Use, c.Long = c.Name()+" --events FILE [--state FILE] [--spans FILE] >PAGE", pictureDoes
	flags := c.Flags()
	events := flags.String("events", "", "`file` that pulumi --event-log has written; required")
	state := flags.String("state", "", "`file` that pulumi stack export has written; - is standard input")
	spans := flags.String("spans", "",
		`file with the times in which machines worked, one {"what":"boot","of":"infra-cp-1","from":TIME,"to":TIME} a line`)
	c.RunE = func(c *cobra.Command, _ []string) error {
		var missing error
		if *events == "" {
			missing = errors.New("--events: is missing; give the file")
		}
		var update picture.Update
		err := errors.Join(missing,
			readInto(c, "--events", *events, picture.ReadRun, &update.Run),
			readInto(c, "--state", *state, picture.ReadState, &update.State),
			readInto(c, "--spans", *spans, picture.ReadSpans, &update.Spans),
		)
		if err != nil {
			return command.Wrong(err)
		}
		update.Cluster = clusterOf(update.State)
		return update.Write(c.OutOrStdout())
	}
}

// readInto reads the file that a flag names; - is standard input, and "" reads nothing.
func readInto[T any](c *cobra.Command, flagName, path string, read func(io.Reader) (T, error), into *T) error {
	if path == "" {
		return nil
	}
	content := c.InOrStdin()
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("%s: %w", flagName, err)
		}
		defer file.Close()
		content = file
	}
	value, err := read(content)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", flagName, path, err)
	}
	*into = value
	return nil
}

// clusterOf returns what the outputs of a stack tell of its cluster.
func clusterOf(state *picture.State) picture.Cluster {
	all := picture.Cluster{
		Gate: picture.Decode[gate.Spec](state.Output(contract.GateSpec)),
		Mesh: picture.Decode[mesh.Spec](state.Output(contract.MeshSpec)),
	}
	for _, name := range []string{
		contract.GateReport, contract.HandoverReport, contract.StorageReport, contract.MeshReport, contract.ChecksReport,
	} {
		if report := picture.Decode[health.Report](state.Output(name)); report != nil {
			all.Found = append(all.Found, *report)
		}
	}
	return all
}
