package probe

import (
	"cmp"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/slipway-platform/slipway/internal/health"
)

// terminal returns the file if it is a terminal on which a cursor can be moved, and else nil.
func terminal(file *os.File) *os.File {
	if name := os.Getenv("TERM"); name == "" || name == "dumb" || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return file
}

// reporter returns how a wait is shown: live on a terminal, and by lines elsewhere, such as in Pulumi and in CI.
func (f *waitFlags) reporter() (reporter health.Reporter, end func(health.End)) {
	if f.call.terminal == nil || f.once {
		return health.NewProgress(f.call.stderr), func(health.End) {}
	}
	live := &health.Live{
		To: f.call.terminal, Title: f.call.subcommand + " of " + cmp.Or(f.target.Cluster, "a cluster"), Colour: os.Getenv("NO_COLOR") == "",
		Size: func() (columns, lines int) {
			columns, lines, err := term.GetSize(int(f.call.terminal.Fd()))
			if err != nil || columns == 0 {
				return 80, 24
			}
			return columns, lines
		},
	}
	return live, live.End
}

// heartbeat is the time between two lines while nothing changes, or between two frames; 0 means the default.
func (f *waitFlags) heartbeat() time.Duration {
	if f.call.terminal == nil || f.once {
		return 0
	}
	return health.LiveHeartbeat
}
