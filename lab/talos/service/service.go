// Package service runs the Talos services of a simulated node. Each starts when the services that it depends on are up, takes some time,
// and reports its state in the words of Talos.
package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/latency"
	"github.com/slipway-platform/slipway/lab/talos/cosi"
	"github.com/slipway-platform/slipway/lab/talos/journal"
	"github.com/slipway-platform/slipway/lab/wait"
)

// keptEvents is the number of events that Talos keeps per service.
const keptEvents = 64

// Node is what services need of the node that they run on.
type Node struct {
	Name       string       // of the VM
	Go         func(func()) // runs a function until the boot ends
	Latency    latency.Latencies
	Faults     *fault.Set
	Journal    *journal.Journal
	Resources  *cosi.Resources
	LogStart   func(id string)         // writes the first lines of a service's process
	LogFailure func(id, reason string) // writes the error of a service that fails
}

// Manager runs the services of a node.
type Manager struct {
	wait.Changes // of the services

	node Node
	ctx  context.Context // ends with the boot

	mu  sync.Mutex
	all map[string]*service
}

// New returns a manager without services. They run until ctx ends.
func New(ctx context.Context, node Node) *Manager {
	return &Manager{node: node, ctx: ctx, all: map[string]*service{}}
}

// Spec is what distinguishes a service from others.
type Spec struct {
	ID      string
	Depends []string
	// Prepare, if not nil, blocks until the service may start; report reports what it waits for.
	Prepare func(ctx context.Context, report Report) error
	// Started, if not nil, is called once the process runs.
	Started func() error
	// Healthy, if not nil, blocks until the first successful health check. Unhealthy is the message of the check until
	// then.
	Healthy   func(ctx context.Context) error
	Unhealthy func() string
	// Watch, if not nil, runs after that. It reports the problem of a check that fails, and "" when checks pass again.
	Watch func(ctx context.Context, report func(problem string))
	// Unchecked means that the service has no health check.
	Unchecked bool
	// Running, if not nil, runs from the start of the process to its end.
	Running func(ctx context.Context)
	// Broken, if not nil, returns the message of a service that a fault breaks while it runs, "" if there is none. The service then waits, and
	// starts again when the fault is off. Its tries in between are not modelled.
	Broken func() string
	// Stopped, if not nil, undoes Started and Healthy.
	Stopped func()
	// Operations that the API allows, as in Talos.
	CanStart, CanStop, CanRestart bool
}

// Report reports a service's state; see Spec.Prepare.
type Report = func(machine.ServiceStateEvent_Action, string)

// service is the state of one service; guarded by Manager.mu.
type service struct {
	spec    Spec
	state   machine.ServiceStateEvent_Action
	health  *machine.ServiceHealth
	events  []*machine.ServiceEvent
	wanted  bool
	cancel  context.CancelFunc // ends the current run; nil between runs
	message string
}

// Status is a Talos service of a running machine.
type Status struct {
	ID      string `json:"id"`
	State   string `json:"state"` // as talosctl prints it, e.g. Running
	Healthy bool   `json:"healthy"`
	Message string `json:"message,omitempty"` // last event
}

// ErrUnknown is the error for a service that the node does not have.
var ErrUnknown = errors.New("not defined")

// find returns a service. The caller holds the mutex.
func (s *Manager) find(id string) (*service, error) {
	if svc := s.all[id]; svc != nil {
		return svc, nil
	}
	return nil, fmt.Errorf("service %q %w", id, ErrUnknown)
}

// SetWanted starts or stops a service.
func (s *Manager) SetWanted(id string, wanted bool) error { return s.order(id, wanted, !wanted) }

// Restart ends the current run; the next one begins by itself. It does nothing if the node does not have the service.
func (s *Manager) Restart(id string) { _ = s.order(id, true, true) }

// order says whether a service is to run, and whether its current run ends.
func (s *Manager) order(id string, wanted, end bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	svc, err := s.find(id)
	if err != nil {
		return err
	}
	svc.wanted = wanted
	if end && svc.cancel != nil {
		svc.cancel()
	}
	s.Notify()
	return nil
}

// StopAll stops every service except machined and apid, which serve the API until the end.
func (s *Manager) StopAll() {
	s.mu.Lock()
	ids := slices.Sorted(maps.Keys(s.all))
	s.mu.Unlock()
	for _, id := range ids {
		if id != "machined" && id != "apid" {
			_ = s.SetWanted(id, false) // every id is known
		}
	}
}

// AllUp tells whether every service is up.
func (s *Manager) AllUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, svc := range s.all {
		if !svc.up() {
			return false
		}
	}
	return true
}

// Problems are, in Talos's words, the services that run and are known to be unhealthy, and the required ones that do not run.
func (s *Manager) Problems(required []string) (problems []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.all)) {
		svc := s.all[id]
		if svc.state == machine.ServiceStateEvent_RUNNING && !svc.health.GetUnknown() && !svc.health.GetHealthy() {
			problems = append(problems, id+" not healthy")
		}
	}
	for _, id := range required {
		if svc := s.all[id]; svc == nil || svc.state != machine.ServiceStateEvent_RUNNING {
			problems = append(problems, id+" not running")
		}
	}
	return problems
}

// IsUp tells whether a service is up.
func (s *Manager) IsUp(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id] != nil && s.all[id].up()
}

// List is the answer to ServiceList.
func (s *Manager) List() []*machine.ServiceInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*machine.ServiceInfo
	for _, id := range slices.Sorted(maps.Keys(s.all)) {
		svc := s.all[id]
		out = append(out, &machine.ServiceInfo{
			Id: id, State: stateName(svc.state), Health: svc.health,
			Events: &machine.ServiceEvents{Events: slices.Clone(svc.events)},
		})
	}
	return out
}

// Status returns the services for `lab status`.
func (s *Manager) Status() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Status
	for _, id := range slices.Sorted(maps.Keys(s.all)) {
		svc := s.all[id]
		out = append(out, Status{ID: id, State: stateName(svc.state), Healthy: svc.up(), Message: svc.message})
	}
	return out
}

// Operations of a client.
const (
	OpStart   = "start"
	OpStop    = "stop"
	OpRestart = "restart"
)

// Operate does what a client asks for, if Talos allows that. A service that runs is not started, and one that does not run may be stopped.
func (s *Manager) Operate(id, operation string) error {
	s.mu.Lock()
	svc, err := s.find(id)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	running := svc.cancel != nil
	s.mu.Unlock()
	allowed := map[string]bool{OpStart: svc.spec.CanStart, OpStop: svc.spec.CanStop || !running, OpRestart: svc.spec.CanRestart}
	switch {
	case operation == OpStart && running:
		return nil
	case !allowed[operation]:
		return fmt.Errorf("service %q doesn't support %s operation via API", id, operation)
	}
	return s.order(id, operation != OpStop, operation != OpStart)
}
