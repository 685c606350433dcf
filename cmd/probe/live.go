package probe

import (
	"cmp"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/slipway-platform/slipway/internal/health"
)

// terminal returns the file that is written to if it is a terminal on which a cursor can be moved, and else nil.
func terminal(to io.Writer) *os.File {
	file, is := to.(*os.File)
	if name := os.Getenv("TERM"); !is || name == "" || name == "dumb" || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return file
}

// reporter returns how a wait is shown: live on a terminal, and by lines elsewhere, such as in Pulumi and in CI.
func (f *waitFlags) reporter() (reporter health.Reporter, end func(health.End)) {
	to := terminal(f.command.ErrOrStderr())
	if to == nil || f.once {
		return health.NewProgress(f.command.ErrOrStderr()), func(health.End) {}
	}
	live := &health.Live{
		To: to, Title: f.command.Name() + " of " + cmp.Or(f.target.Cluster, "a cluster"), Colour: os.Getenv("NO_COLOR") == "",
		Size: func() (columns, lines int) {
			columns, lines, err := term.GetSize(int(to.Fd()))
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
	if f.once || terminal(f.command.ErrOrStderr()) == nil {
		return 0
	}
	return health.LiveHeartbeat
}
