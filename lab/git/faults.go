package git

import (
	"time"

	"github.com/slipway-platform/slipway/lab/fault"
)

const (
	movesEvery = 10 * time.Second // under the fault git-moves without detail
	maxMoves   = 100
)

// refused tells whether the fault git-refused is on: no credentials are accepted.
func (s *Server) refused() bool { return s.Faults.IsActive(fault.GitRefused) }

// broken returns the status that the fault git-5xx answers with, and its words.
func (s *Server) broken() (code int, words string, on bool) {
	f, on := s.Faults.Active(fault.Git5xx)
	if !on {
		return 0, "", false
	}
	code, words = f.Status()
	return code, words, true
}

// moves returns how many commits the fault git-moves has added so far; 0 if it is off.
func (s *Server) moves() int {
	f, on := s.Faults.Active(fault.GitMoves)
	if !on {
		return 0
	}
	every, err := time.ParseDuration(f.Detail)
	if err != nil {
		every = movesEvery
	}
	return min(maxMoves, 1+int(f.Age()/every))
}
