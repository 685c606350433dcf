package git

import "github.com/slipway-platform/slipway/lab/fault"

// refused tells whether the fault git-refused is on: every request gets 401.
func (s *Server) refused() bool { return s.Faults.IsActive(fault.GitRefused) }
