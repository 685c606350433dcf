package service

import (
	"fmt"
)

// StartByAPI starts a service, if Talos allows that. A running one stays.
func (s *Manager) StartByAPI(id string) error {
	running, err := s.checkOperation(id, "start", func(sp Spec) bool { return sp.CanStart })
	switch {
	case running:
		return nil
	case err != nil:
		return err
	}
	return s.SetWanted(id, true)
}

// StopByAPI stops a service, if Talos allows that.
func (s *Manager) StopByAPI(id string) error {
	if running, err := s.checkOperation(id, "stop", func(sp Spec) bool { return sp.CanStop }); running && err != nil {
		return err
	}
	return s.SetWanted(id, false)
}

// RestartByAPI restarts a service, if Talos allows that.
func (s *Manager) RestartByAPI(id string) error {
	if _, err := s.checkOperation(id, "restart", func(sp Spec) bool { return sp.CanRestart }); err != nil {
		return err
	}
	s.Restart(id)
	return nil
}

// checkOperation tells whether a service runs, and returns an error if Talos does not allow an operation on it.
func (s *Manager) checkOperation(id, operation string, may func(Spec) bool) (running bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	svc, err := s.find(id)
	if err != nil {
		return false, err
	}
	running = svc.cancel != nil
	if !may(svc.spec) {
		return running, fmt.Errorf("service %q doesn't support %s operation via API", id, operation)
	}
	return running, nil
}
