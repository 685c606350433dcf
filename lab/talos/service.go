package talos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/slipway-platform/slipway/lab/wait"
)

// keptServiceEvents is the number of events that Talos keeps per service.
const keptServiceEvents = 64

// services runs the Talos services of a configured node. Each starts when the services that it depends on are up, takes
// some time, and reports its state in the words of Talos.
type services struct {
	b      *boot
	change wait.Changes

	mu  sync.Mutex
	all map[string]*service
}

// serviceSpec is what distinguishes a service from others.
type serviceSpec struct {
	id      string
	depends []string
	// prepare, if not nil, blocks until the service may start; report reports what it waits for.
	prepare func(ctx context.Context, report reportState) error
	// started, if not nil, is called once the process runs.
	started func() error
	// healthy, if not nil, blocks until the first successful health check. unhealthy is the message of the check until
	// then.
	healthy   func(ctx context.Context) error
	unhealthy func() string
	// unchecked means that the service has no health check.
	unchecked bool
	// running, if not nil, runs from the start of the process to its end.
	running func(ctx context.Context)
	// broken, if not nil, returns the message of a service that a fault breaks while it runs, "" if there is none. The service then waits, and
	// starts again when the fault is off. Its tries in between are not modelled.
	broken func() string
	// stopped, if not nil, undoes started and healthy.
	stopped func()
	// Operations that the API allows, as in Talos.
	canStart, canStop, canRestart bool
}

// reportState reports a service's state; see serviceSpec.prepare.
type reportState = func(machine.ServiceStateEvent_Action, string)

// service is the state of one service; guarded by services.mu.
type service struct {
	spec    serviceSpec
	state   machine.ServiceStateEvent_Action
	health  *machine.ServiceHealth
	events  []*machine.ServiceEvent
	wanted  bool
	cancel  context.CancelFunc // ends the current run; nil between runs
	message string
}

func newServices(b *boot) *services { return &services{b: b, all: map[string]*service{}} }

// start adds a service and runs it until the boot ends.
func (s *services) start(spec serviceSpec) {
	svc := &service{spec: spec, wanted: true}
	s.mu.Lock()
	s.all[spec.id] = svc
	s.mu.Unlock()
	s.set(svc, machine.ServiceStateEvent_INITIALIZED, nil, "")
	s.b.wg.Go(func() {
		for s.awaitWanted(svc) == nil {
			if s.awaitRepair(svc) {
				s.runOnce(svc)
			}
		}
	})
}

// awaitWanted waits until the service is to run.
func (s *services) awaitWanted(svc *service) error {
	for {
		changed := s.change.Changed()
		s.mu.Lock()
		wanted := svc.wanted
		s.mu.Unlock()
		if s.b.ctx.Err() != nil {
			return errOff
		}
		if wanted {
			return nil
		}
		select {
		case <-changed:
		case <-s.b.ctx.Done():
			return errOff
		}
	}
}

// awaitRepair waits as long as a fault breaks a service that was running, which Talos starts again and again. It returns false if the
// service is stopped meanwhile.
func (s *services) awaitRepair(svc *service) bool {
	s.mu.Lock()
	waits := svc.state == machine.ServiceStateEvent_WAITING
	s.mu.Unlock()
	if svc.spec.broken == nil || !waits {
		return true
	}
	for {
		changed, faults := s.change.Changed(), s.b.site.cfg.Faults.Changed()
		s.mu.Lock()
		wanted := svc.wanted
		s.mu.Unlock()
		switch {
		case s.b.ctx.Err() != nil:
			return false
		case !wanted:
			s.set(svc, machine.ServiceStateEvent_STOPPING, nil, "Aborting restart sequence")
			s.set(svc, machine.ServiceStateEvent_FINISHED, nil, "Service finished successfully")
			return false
		case svc.spec.broken() == "":
			return true
		}
		select {
		case <-changed:
		case <-faults:
		case <-s.b.ctx.Done():
		}
	}
}

// runOnce runs a service from start to stop or failure.
func (s *services) runOnce(svc *service) {
	ctx, cancel := context.WithCancel(s.b.ctx)
	defer cancel()
	s.mu.Lock()
	svc.cancel = cancel
	s.mu.Unlock()
	report := func(state machine.ServiceStateEvent_Action, msg string) { s.set(svc, state, nil, msg) }

	report(machine.ServiceStateEvent_STARTING, "Starting service")
	if s.awaitDependencies(ctx, svc) != nil {
		s.finish(svc)
		return
	}
	report(machine.ServiceStateEvent_PREPARING, "Running pre state")
	if svc.spec.prepare != nil {
		if err := svc.spec.prepare(ctx, report); err != nil {
			if ctx.Err() == nil {
				s.fail(svc, "Failed to run pre stage: "+err.Error())
				return
			}
			s.finish(svc)
			return
		}
	}
	report(machine.ServiceStateEvent_PREPARING, "Creating service runner")
	if svc.spec.started != nil {
		if err := svc.spec.started(); err != nil {
			s.fail(svc, "Failed to create runner: "+err.Error())
			return
		}
	}
	if svc.spec.stopped != nil {
		defer svc.spec.stopped()
	}
	if svc.spec.running != nil {
		s.b.wg.Go(func() { svc.spec.running(ctx) })
	}
	s.b.logStart(svc.spec.id)
	report(machine.ServiceStateEvent_RUNNING, fmt.Sprintf("Started task %s (PID %d) for container %s",
		svc.spec.id, pid(svc.spec.id), svc.spec.id))
	s.supervise(ctx, svc)
}

// supervise watches a running service until it is stopped or fails.
func (s *services) supervise(ctx context.Context, svc *service) {
	checks, stopChecks := context.WithCancel(ctx)
	defer stopChecks()
	healthy := make(chan error, 1)
	if !svc.spec.unchecked {
		s.b.wg.Go(func() { healthy <- s.check(checks, svc) })
	}
	for {
		changed := s.b.site.cfg.Faults.Changed()
		if svc.spec.broken != nil {
			if msg := svc.spec.broken(); msg != "" {
				stopChecks()
				s.b.logFailure(svc.spec.id, msg)
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
			}
			healthy = nil
		case <-changed:
		case <-ctx.Done():
			s.finish(svc)
			return
		}
	}
}

// check waits for the first successful health check.
func (s *services) check(ctx context.Context, svc *service) error {
	started := s.b.site.cfg.Latency.Record.Begin("Talos service", s.b.m.hw.Name)
	if err := sleep(ctx, s.b.site.cfg.Latency.Service); err != nil {
		return err
	}
	started()
	if svc.spec.healthy == nil {
		return nil
	}
	if svc.spec.unhealthy != nil {
		// A report of failed health must not come after the successful one, because it would stay forever.
		var reporting sync.Mutex
		over := false
		late := time.AfterFunc(s.b.site.cfg.Latency.Service, func() {
			reporting.Lock()
			defer reporting.Unlock()
			if msg := svc.spec.unhealthy(); ctx.Err() == nil && !over {
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
	return svc.spec.healthy(ctx)
}

// fail marks a service as failed. It stays so until it is started again.
func (s *services) fail(svc *service, msg string) {
	s.b.logFailure(svc.spec.id, msg)
	s.set(svc, machine.ServiceStateEvent_FAILED, nil, msg)
	s.b.Printk("[talos] service[%s](Failed): %s", svc.spec.id, msg)
	s.mu.Lock()
	svc.cancel = nil
	svc.wanted = false
	s.mu.Unlock()
}

func (s *services) finish(svc *service) {
	s.set(svc, machine.ServiceStateEvent_STOPPING, nil, "Sending SIGTERM to task "+svc.spec.id)
	s.set(svc, machine.ServiceStateEvent_FINISHED, nil, "Service finished successfully")
	s.mu.Lock()
	svc.cancel = nil
	s.mu.Unlock()
}

// awaitDependencies waits until all dependencies of the service are up.
func (s *services) awaitDependencies(ctx context.Context, svc *service) error {
	reported := ""
	for {
		changed := s.change.Changed()
		waiting := ""
		s.mu.Lock()
		for _, id := range svc.spec.depends {
			if dep := s.all[id]; dep == nil || !dep.up() {
				waiting = fmt.Sprintf("Waiting for service %q to be \"up\"", id)
				break
			}
		}
		s.mu.Unlock()
		if waiting == "" {
			return nil
		}
		if waiting != reported {
			s.set(svc, machine.ServiceStateEvent_WAITING, nil, waiting)
			reported = waiting
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errOff
		}
	}
}

// up tells whether the service runs and is healthy. The caller holds the services' mutex.
func (svc *service) up() bool {
	return svc.state == machine.ServiceStateEvent_RUNNING && (svc.spec.unchecked || svc.health.GetHealthy())
}

// set records a state. A nil health means that nobody has checked the service yet.
func (s *services) set(svc *service, state machine.ServiceStateEvent_Action, health *machine.ServiceHealth, msg string) {
	if health == nil {
		health = &machine.ServiceHealth{Unknown: true}
	}
	s.mu.Lock()
	svc.state, svc.health, svc.message = state, health, msg
	if msg != "" {
		svc.events = append(svc.events, &machine.ServiceEvent{Msg: msg, State: stateName(state), Ts: timestamppb.Now()})
		if over := len(svc.events) - keptServiceEvents; over > 0 {
			svc.events = slices.Delete(svc.events, 0, over)
		}
	}
	s.mu.Unlock()
	if msg != "" {
		s.b.Events.Publish("", &machine.ServiceStateEvent{Service: svc.spec.id, Action: state, Message: msg, Health: health})
		s.b.Printk("[talos] service[%s](%s): %s", svc.spec.id, stateName(state), msg)
	}
	s.b.publishService(svc.spec.id, state == machine.ServiceStateEvent_RUNNING, health)
	s.change.Notify()
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

// errUnknownService is the error for a service that the node does not have.
var errUnknownService = errors.New("not defined")

// setWanted starts or stops a service.
func (s *services) setWanted(id string, wanted bool) error {
	s.mu.Lock()
	svc := s.all[id]
	if svc == nil {
		s.mu.Unlock()
		return fmt.Errorf("service %q %w", id, errUnknownService)
	}
	svc.wanted = wanted
	if cancel := svc.cancel; !wanted && cancel != nil {
		cancel()
	}
	s.mu.Unlock()
	s.change.Notify()
	return nil
}

// restart ends the current run; the next one begins by itself.
func (s *services) restart(id string) {
	s.mu.Lock()
	if svc := s.all[id]; svc != nil {
		svc.wanted = true
		if svc.cancel != nil {
			svc.cancel()
		}
	}
	s.mu.Unlock()
	s.change.Notify()
}

// stopAll stops every service except machined and apid, which serve the API until the end.
func (s *services) stopAll() {
	s.mu.Lock()
	ids := slices.Sorted(maps.Keys(s.all))
	s.mu.Unlock()
	for _, id := range ids {
		if id != "machined" && id != "apid" {
			_ = s.setWanted(id, false) // every id is known
		}
	}
}

// notUp returns the services that are not up.
func (s *services) notUp() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, id := range slices.Sorted(maps.Keys(s.all)) {
		if !s.all[id].up() {
			out = append(out, id)
		}
	}
	return out
}

// problems are, in Talos's words, the services that run and are known to be unhealthy, and the required ones that do not run.
func (s *services) problems(required []string) (problems []string) {
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

// isUp tells whether a service is up.
func (s *services) isUp(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id] != nil && s.all[id].up()
}

// list is the answer to ServiceList.
func (s *services) list() []*machine.ServiceInfo {
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

func (s *services) status() []ServiceStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []ServiceStatus
	for _, id := range slices.Sorted(maps.Keys(s.all)) {
		svc := s.all[id]
		out = append(out, ServiceStatus{ID: id, State: stateName(svc.state), Healthy: svc.up(), Message: svc.message})
	}
	return out
}

// pid derives a stable process id from a name.
func pid(id string) int {
	n := 1000
	for _, c := range id {
		n = (n*31 + int(c)) % 30000
	}
	return n + 1000
}

// publishService publishes the state of a service while it runs.
func (b *boot) publishService(id string, running bool, health *machine.ServiceHealth) {
	r := v1alpha1.NewService(id)
	if !running {
		b.res.Remove(r.Metadata())
		return
	}
	r.TypedSpec().Running, r.TypedSpec().Healthy, r.TypedSpec().Unknown = true, health.GetHealthy(), health.GetUnknown()
	b.res.Put(r)
}
