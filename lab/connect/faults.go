package connect

import (
	"context"
	"time"

	"github.com/slipway-platform/slipway/lab/fault"
)

// slowness is how long an answer takes under the fault connect-slow without detail.
const slowness = 30 * time.Second

// Refused tells whether the fault connect-refused is on: nothing listens on the server's ports.
func (s *Server) Refused() bool { return s.Faults.IsActive(fault.ConnectRefused, s.Cluster) }

// slow waits as long as the fault connect-slow says, at most until it is switched off.
func (s *Server) slow(ctx context.Context) {
	f, on := s.Faults.Active(fault.ConnectSlow, s.Cluster)
	if !on {
		return
	}
	takes, err := time.ParseDuration(f.Detail)
	if err != nil {
		takes = slowness
	}
	end := time.NewTimer(takes)
	defer end.Stop()
	for {
		changed := s.Faults.Changed()
		if !s.Faults.IsActive(fault.ConnectSlow, s.Cluster) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-end.C:
			return
		case <-changed:
		}
	}
}

// broken is the answer to every request under the fault connect-5xx; nil if it is off.
func (s *Server) broken() error {
	f, on := s.Faults.Active(fault.Connect5xx, s.Cluster)
	if !on {
		return nil
	}
	code, message := f.Status()
	return fail(code, "%s", message)
}
