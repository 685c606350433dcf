package talos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// keptServiceEvents is how many events Talos keeps per service.
const keptServiceEvents = 64

// services runs a configured node's Talos services: each starts when what it depends on is up, takes its time, and
// tells what it is doing in the words of Talos.
type services struct {
	b      *boot
	change notifier

	mu  sync.Mutex
	all map[string]*service
}

// serviceSpec is what differs between services.
type serviceSpec struct {
	id      string
	depends []string
	// prepare, if not nil, blocks until the service may start; say reports what it waits for.
	prepare func(ctx context.Context, say sayService) error
	// started, if not nil, is called once the process runs.
	started func() error
	// healthy, if not nil, blocks until the first good health check. unhealthy is the check's message meanwhile.
	healthy   func(ctx context.Context) error
	unhealthy func() string
	// unchecked services have no health check.
	unchecked bool
	// running, if not nil, follows the process from its start to its end.
	running func(ctx context.Context)
	// broken, if not nil, names a failure that a fault causes, "" if none.
	broken func() string
	// stopped, if not nil, undoes started and healthy.
	stopped func()
	// What the API may do with it, as in Talos.
	canStart, canStop, canRestart bool
}

// sayService reports a service's state; see serviceSpec.prepare.
type sayService = func(machine.ServiceStateEvent_Action, string)

// service is the state of one service; guarded by services.mu.
type service struct {
	spec    serviceSpec
	state   machine.ServiceStateEvent_Action
	health  *machine.ServiceHealth
	events  []*machine.ServiceEvent
	wanted  bool
	cancel  context.CancelFunc // ends the current life; nil between lives
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
		for s.await(svc) == nil {
			s.live(svc)
		}
	})
}

// await waits until the service is wanted.
func (s *services) await(svc *service) error {
	for {
		changed := s.change.changed()
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

// live is one life of a service from start to stop or failure.
func (s *services) live(svc *service) {
	ctx, cancel := context.WithCancel(s.b.ctx)
	defer cancel()
	s.mu.Lock()
	svc.cancel = cancel
	s.mu.Unlock()
	say := func(state machine.ServiceStateEvent_Action, msg string) { s.set(svc, state, nil, msg) }

	say(machine.ServiceStateEvent_STARTING, "Starting service")
	if s.waitUp(ctx, svc) != nil {
		s.finish(svc)
		return
	}
	say(machine.ServiceStateEvent_PREPARING, "Running pre state")
	if svc.spec.prepare != nil {
		if err := svc.spec.prepare(ctx, say); err != nil {
			if ctx.Err() == nil {
				s.fail(svc, "Failed to run pre stage: "+err.Error())
				return
			}
			s.finish(svc)
			return
		}
	}
	say(machine.ServiceStateEvent_PREPARING, "Creating service runner")
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
	say(machine.ServiceStateEvent_RUNNING, fmt.Sprintf("Started task %s (PID %d) for container %s", svc.spec.id, pid(svc.spec.id), svc.spec.id))
	s.supervise(ctx, svc)
}

// supervise follows a running service until it is stopped or breaks.
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
				s.fail(svc, msg)
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
				s.set(svc, machine.ServiceStateEvent_RUNNING, &machine.ServiceHealth{Healthy: true, LastChange: timestamppb.Now()}, "Health check successful")
			}
			healthy = nil
		case <-changed:
		case <-ctx.Done():
			s.finish(svc)
			return
		}
	}
}

// check is the wait for a first good health check.
func (s *services) check(ctx context.Context, svc *service) error {
	if err := sleep(ctx, s.b.site.cfg.Latency.Service); err != nil {
		return err
	}
	if svc.spec.healthy == nil {
		return nil
	}
	if svc.spec.unhealthy != nil {
		// A report of bad health must not come after the good one, which would stand for ever.
		var reporting sync.Mutex
		over := false
		late := time.AfterFunc(s.b.site.cfg.Latency.Service, func() {
			reporting.Lock()
			defer reporting.Unlock()
			if msg := svc.spec.unhealthy(); ctx.Err() == nil && !over {
				s.set(svc, machine.ServiceStateEvent_RUNNING, &machine.ServiceHealth{LastMessage: msg, LastChange: timestamppb.Now()}, "Health check failed: "+msg)
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

// fail leaves a service failed until it is started again or what broke it is gone.
func (s *services) fail(svc *service, msg string) {
	s.b.logFailure(svc.spec.id, msg)
	s.set(svc, machine.ServiceStateEvent_FAILED, nil, msg)
	s.b.printk("[talos] service[%s](Failed): %s", svc.spec.id, msg)
	s.mu.Lock()
	svc.cancel = nil
	svc.wanted = false
	s.mu.Unlock()
	if svc.spec.broken == nil {
		return
	}
	s.b.wg.Go(func() {
		if s.b.site.cfg.Faults.Wait(s.b.ctx, func() bool { return svc.spec.broken() == "" }) == nil {
			_ = s.want(svc.spec.id, true)
		}
	})
}

func (s *services) finish(svc *service) {
	s.set(svc, machine.ServiceStateEvent_STOPPING, nil, "Sending SIGTERM to task "+svc.spec.id)
	s.set(svc, machine.ServiceStateEvent_FINISHED, nil, "Service finished successfully")
	s.mu.Lock()
	svc.cancel = nil
	s.mu.Unlock()
}

// waitUp waits until all services that this one depends on are up.
func (s *services) waitUp(ctx context.Context, svc *service) error {
	said := ""
	for {
		changed := s.change.changed()
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
		if waiting != said {
			s.set(svc, machine.ServiceStateEvent_WAITING, nil, waiting)
			said = waiting
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errOff
		}
	}
}

// up is called with the services' mutex held.
func (svc *service) up() bool {
	return svc.state == machine.ServiceStateEvent_RUNNING && (svc.spec.unchecked || svc.health.GetHealthy())
}

// set records a state. A nil health is that of a service nobody has checked yet.
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
		s.b.events.publish("", &machine.ServiceStateEvent{Service: svc.spec.id, Action: state, Message: msg, Health: health})
		s.b.printk("[talos] service[%s](%s): %s", svc.spec.id, stateName(state), msg)
	}
	s.b.publishService(svc.spec.id, state == machine.ServiceStateEvent_RUNNING, health)
	s.change.notify()
}

// stateName is how Talos spells a state.
func stateName(state machine.ServiceStateEvent_Action) string {
	name := state.String()
	out := []byte(name)
	for i := 1; i < len(out); i++ {
		out[i] += 'a' - 'A'
	}
	return string(out)
}

// want starts or stops a service.
func (s *services) want(id string, wanted bool) error {
	s.mu.Lock()
	svc := s.all[id]
	if svc == nil {
		s.mu.Unlock()
		return fmt.Errorf("service %q not defined", id)
	}
	svc.wanted = wanted
	if cancel := svc.cancel; !wanted && cancel != nil {
		cancel()
	}
	s.mu.Unlock()
	s.change.notify()
	return nil
}

// restart ends the current life; the next one begins by itself.
func (s *services) restart(id string) {
	s.mu.Lock()
	if svc := s.all[id]; svc != nil {
		svc.wanted = true
		if svc.cancel != nil {
			svc.cancel()
		}
	}
	s.mu.Unlock()
	s.change.notify()
}

// stopAll stops every service but machined and apid, which serve the API until the very end.
func (s *services) stopAll() {
	s.mu.Lock()
	ids := slices.Sorted(maps.Keys(s.all))
	s.mu.Unlock()
	for _, id := range ids {
		if id != "machined" && id != "apid" {
			_ = s.want(id, false) // every id is known
		}
	}
}

// unmet names the services that are not up; all are if it is empty.
func (s *services) unmet() []string {
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

// list is the answer to ServiceList.
func (s *services) list() []*machine.ServiceInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*machine.ServiceInfo
	for _, id := range slices.Sorted(maps.Keys(s.all)) {
		svc := s.all[id]
		out = append(out, &machine.ServiceInfo{Id: id, State: stateName(svc.state), Health: svc.health, Events: &machine.ServiceEvents{Events: slices.Clone(svc.events)}})
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

// pid makes up a process id that stays the same.
func pid(id string) int {
	n := 1000
	for _, c := range id {
		n = (n*31 + int(c)) % 30000
	}
	return n + 1000
}

// publishService publishes a service while it runs.
func (b *boot) publishService(id string, running bool, health *machine.ServiceHealth) {
	r := v1alpha1.NewService(id)
	if !running {
		b.res.Remove(r.Metadata())
		return
	}
	r.TypedSpec().Running, r.TypedSpec().Healthy, r.TypedSpec().Unknown = true, health.GetHealthy(), health.GetUnknown()
	b.res.Put(r)
}
