package service

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/slipway-platform/slipway/lab/wait"
)

// Start adds a service and runs it until the boot ends.
func (s *Manager) Start(spec Spec) {
	svc := &service{spec: spec, wanted: true}
	s.mu.Lock()
	s.all[spec.ID] = svc
	s.mu.Unlock()
	s.set(svc, machine.ServiceStateEvent_INITIALIZED, nil, "")
	s.node.Go(func() {
		for s.ctx.Err() == nil && s.awaitWanted(svc) {
			if s.awaitRepair(svc) {
				s.runOnce(svc)
			}
		}
	})
}

// awaitWanted waits until the service is to run. It returns false if the boot ends before.
func (s *Manager) awaitWanted(svc *service) bool {
	return s.Until(s.ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return svc.wanted
	})
}

// awaitRepair waits as long as a fault breaks a service that was running, which Talos starts again and again. It returns false if the
// service is stopped meanwhile.
func (s *Manager) awaitRepair(svc *service) bool {
	s.mu.Lock()
	waits := svc.state == machine.ServiceStateEvent_WAITING
	s.mu.Unlock()
	if svc.spec.Broken == nil || !waits {
		return true
	}
	for {
		changed, faults := s.Changed(), s.node.Faults.Changed()
		s.mu.Lock()
		wanted := svc.wanted
		s.mu.Unlock()
		switch {
		case s.ctx.Err() != nil:
			return false
		case !wanted:
			s.set(svc, machine.ServiceStateEvent_STOPPING, nil, "Aborting restart sequence")
			s.set(svc, machine.ServiceStateEvent_FINISHED, nil, "Service finished successfully")
			return false
		case svc.spec.Broken() == "":
			return true
		}
		select {
		case <-changed:
		case <-faults:
		case <-s.ctx.Done():
		}
	}
}

// runOnce runs a service from start to stop or failure.
func (s *Manager) runOnce(svc *service) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	s.mu.Lock()
	svc.cancel = cancel
	s.mu.Unlock()
	report := func(state machine.ServiceStateEvent_Action, msg string) { s.set(svc, state, nil, msg) }

	report(machine.ServiceStateEvent_STARTING, "Starting service")
	if !s.awaitDependencies(ctx, svc) {
		s.finish(svc)
		return
	}
	report(machine.ServiceStateEvent_PREPARING, "Running pre state")
	if svc.spec.Prepare != nil {
		if err := svc.spec.Prepare(ctx, report); err != nil {
			if ctx.Err() == nil {
				s.fail(svc, "Failed to run pre stage: "+err.Error())
				return
			}
			s.finish(svc)
			return
		}
	}
	report(machine.ServiceStateEvent_PREPARING, "Creating service runner")
	if svc.spec.Started != nil {
		if err := svc.spec.Started(); err != nil {
			s.fail(svc, "Failed to create runner: "+err.Error())
			return
		}
	}
	if svc.spec.Stopped != nil {
		defer svc.spec.Stopped()
	}
	if svc.spec.Running != nil {
		s.node.Go(func() { svc.spec.Running(ctx) })
	}
	s.node.LogStart(svc.spec.ID)
	report(machine.ServiceStateEvent_RUNNING, fmt.Sprintf("Started task %s (PID %d) for container %s",
		svc.spec.ID, PID(svc.spec.ID), svc.spec.ID))
	s.supervise(ctx, svc)
}

// supervise watches a running service until it is stopped or fails.
func (s *Manager) supervise(ctx context.Context, svc *service) {
	checks, stopChecks := context.WithCancel(ctx)
	defer stopChecks()
	healthy, later := make(chan error, 1), make(chan string)
	if !svc.spec.Unchecked {
		s.node.Go(func() { healthy <- s.check(checks, svc) })
	}
	for {
		changed := s.node.Faults.Changed()
		if svc.spec.Broken != nil {
			if msg := svc.spec.Broken(); msg != "" {
				stopChecks()
				s.node.LogFailure(svc.spec.ID, msg)
				s.set(svc, machine.ServiceStateEvent_WAITING, nil, msg)
				s.mu.Lock()
				svc.cancel = nil
				s.mu.Unlock()
				return
			}
		}
		select {
		case err := <-healthy:
			if err != nil && ctx.Err() == nil {
				s.fail(svc, "Failed running service: "+err.Error())
				return
			}
			if err == nil {
				health := &machine.ServiceHealth{Healthy: true, LastChange: timestamppb.Now()}
				s.set(svc, machine.ServiceStateEvent_RUNNING, health, "Health check successful")
				if svc.spec.Watch != nil {
					s.node.Go(func() { svc.spec.Watch(checks, sender(checks, later)) })
				}
			}
			healthy = nil
		case problem := <-later:
			health := &machine.ServiceHealth{Healthy: problem == "", LastMessage: problem, LastChange: timestamppb.Now()}
			msg := "Health check successful"
			if problem != "" {
				msg = "Health check failed: " + problem
			}
			s.set(svc, machine.ServiceStateEvent_RUNNING, health, msg)
		case <-changed:
		case <-ctx.Done():
			s.finish(svc)
			return
		}
	}
}

// sender returns a function that sends to a channel until ctx ends.
func sender(ctx context.Context, to chan<- string) func(string) {
	return func(text string) {
		select {
		case to <- text:
		case <-ctx.Done():
		}
	}
}

// check waits for the first successful health check.
func (s *Manager) check(ctx context.Context, svc *service) error {
	started := s.node.Latency.Record.Begin("Talos service", s.node.Name)
	if !wait.Pause(ctx, s.node.Latency.Service) {
		return ctx.Err()
	}
	started()
	if svc.spec.Healthy == nil {
		return nil
	}
	if svc.spec.Unhealthy != nil {
		// A report of failed health must not come after the successful one, because it would stay forever.
		var reporting sync.Mutex
		over := false
		late := time.AfterFunc(s.node.Latency.Service, func() {
			reporting.Lock()
			defer reporting.Unlock()
			if msg := svc.spec.Unhealthy(); ctx.Err() == nil && !over {
				health := &machine.ServiceHealth{LastMessage: msg, LastChange: timestamppb.Now()}
				s.set(svc, machine.ServiceStateEvent_RUNNING, health, "Health check failed: "+msg)
			}
		})
		defer func() {
			late.Stop()
			reporting.Lock()
			defer reporting.Unlock()
			over = true
		}()
	}
	return svc.spec.Healthy(ctx)
}

// fail marks a service as failed. It stays so until it is started again.
func (s *Manager) fail(svc *service, msg string) {
	s.node.LogFailure(svc.spec.ID, msg)
	s.set(svc, machine.ServiceStateEvent_FAILED, nil, msg)
	s.node.Journal.Printk("[talos] service[%s](Failed): %s", svc.spec.ID, msg)
	s.mu.Lock()
	svc.cancel = nil
	svc.wanted = false
	s.mu.Unlock()
}

func (s *Manager) finish(svc *service) {
	s.set(svc, machine.ServiceStateEvent_STOPPING, nil, "Sending SIGTERM to task "+svc.spec.ID)
	s.set(svc, machine.ServiceStateEvent_FINISHED, nil, "Service finished successfully")
	s.mu.Lock()
	svc.cancel = nil
	s.mu.Unlock()
}

// awaitDependencies waits until all dependencies of the service are up. It returns false if ctx ends before.
func (s *Manager) awaitDependencies(ctx context.Context, svc *service) bool {
	reported := ""
	return s.Until(ctx, func() bool {
		s.mu.Lock()
		i := slices.IndexFunc(svc.spec.Depends, func(id string) bool { return s.all[id] == nil || !s.all[id].up() })
		s.mu.Unlock()
		if i < 0 {
			return true
		}
		if waiting := fmt.Sprintf("Waiting for service %q to be \"up\"", svc.spec.Depends[i]); waiting != reported {
			s.set(svc, machine.ServiceStateEvent_WAITING, nil, waiting)
			reported = waiting
		}
		return false
	})
}

// up tells whether the service runs and is healthy. The caller holds the services' mutex.
func (svc *service) up() bool {
	return svc.state == machine.ServiceStateEvent_RUNNING && (svc.spec.Unchecked || svc.health.GetHealthy())
}

// set records a state. A nil health means that nobody has checked the service yet.
func (s *Manager) set(svc *service, state machine.ServiceStateEvent_Action, health *machine.ServiceHealth, msg string) {
	if health == nil {
		health = &machine.ServiceHealth{Unknown: true}
	}
	s.mu.Lock()
	svc.state, svc.health, svc.message = state, health, msg
	if msg != "" {
		svc.events = append(svc.events, &machine.ServiceEvent{Msg: msg, State: stateName(state), Ts: timestamppb.Now()})
		if over := len(svc.events) - keptEvents; over > 0 {
			svc.events = slices.Delete(svc.events, 0, over)
		}
	}
	s.mu.Unlock()
	if msg != "" {
		s.node.Journal.Events.Publish("", &machine.ServiceStateEvent{Service: svc.spec.ID, Action: state, Message: msg, Health: health})
		s.node.Journal.Printk("[talos] service[%s](%s): %s", svc.spec.ID, stateName(state), msg)
	}
	s.publish(svc.spec.ID, state == machine.ServiceStateEvent_RUNNING, health)
	s.Notify()
}

// publish publishes the state of a service while it runs.
func (s *Manager) publish(id string, running bool, health *machine.ServiceHealth) {
	r := v1alpha1.NewService(id)
	if !running {
		s.node.Resources.Remove(r.Metadata())
		return
	}
	r.TypedSpec().Running, r.TypedSpec().Healthy, r.TypedSpec().Unknown = true, health.GetHealthy(), health.GetUnknown()
	s.node.Resources.Put(r)
}

// stateName is Talos's spelling of a state.
func stateName(state machine.ServiceStateEvent_Action) string {
	name := state.String()
	out := []byte(name)
	for i := 1; i < len(out); i++ {
		out[i] += 'a' - 'A'
	}
	return string(out)
}

// PID derives a stable process id from a name.
func PID(id string) int {
	n := 1000
	for _, c := range id {
		n = (n*31 + int(c)) % 30000
	}
	return n + 1000
}
