package turn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"

	"github.com/slipway-platform/slipway/internal/talosapi"
)

// BackTimeout is how long a machine may take to serve again after a change that reboots it.
const BackTimeout = 15 * time.Minute

// Queue lets workers reboot one after the other, or as many at once as Most. A machine that does not come back ends it: no other one gets
// its turn in this run.
type Queue struct {
	Most int // 0 means 1

	once  sync.Once
	slots chan struct{}

	mu     sync.Mutex
	failed error // the machine that did not come back
}

// Change is a planned change of a worker's configuration.
type Change struct {
	Credentials   Credentials
	Node          string // address of the worker
	Name          string // of the worker
	Configuration string // its new machine configuration; secret
}

// Await returns once the worker may get its configuration: at once if Talos says that the change needs no reboot, otherwise in its turn.
// The turn ends when the worker has rebooted and its kubelet is healthy. The caller makes the change after Await has returned. A worker
// that does not answer does not wait, because it is out of service already; nor does one that refuses the configuration, which does not reboot.
func (q *Queue) Await(ctx context.Context, c Change) error {
	apis, err := dial(ctx, Turn{Credentials: c.Credentials, Node: c.Node})
	if err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, talosapi.CallTimeout)
	reboots, err := apis.wouldReboot(asking, c)
	var before worker
	if err == nil && reboots {
		before, err = apis.worker(asking, c.Node)
	}
	cancel()
	if err != nil || !reboots {
		apis.Close()
		return nil
	}
	return q.take(ctx, c.Name, before.boot, func(ctx context.Context) (worker, error) { return apis.worker(ctx, c.Node) }, apis.Close)
}

// worker is what a worker reports about itself.
type worker struct {
	boot   string // id of the boot
	serves bool   // it runs, and its kubelet is healthy
}

// take waits for a free place, and frees it when the worker is back.
func (q *Queue) take(
	ctx context.Context, name, boot string, look func(context.Context) (worker, error), done func(),
) error {
	q.once.Do(func() { q.slots = make(chan struct{}, max(q.Most, 1)) })
	select {
	case q.slots <- struct{}{}:
	case <-ctx.Done():
		done()
		return fmt.Errorf("%s: %w", name, context.Cause(ctx))
	}
	q.mu.Lock()
	failed := q.failed
	q.mu.Unlock()
	if failed != nil {
		<-q.slots
		done()
		return fmt.Errorf("%s is not changed, because %w; mend that one, and run up again", name, failed)
	}
	go func() {
		defer done()
		defer func() { <-q.slots }()
		if err := awaitReboot(ctx, boot, look); err != nil {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.failed = fmt.Errorf("%s %w", name, err)
		}
	}()
	return nil
}

// awaitReboot returns once a worker serves in another boot.
func awaitReboot(ctx context.Context, boot string, look func(context.Context) (worker, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, BackTimeout, fmt.Errorf("is not back %s after its change", BackTimeout))
	defer cancel()
	ticker := time.NewTicker(talosapi.Interval)
	defer ticker.Stop()
	for {
		looking, done := context.WithTimeout(ctx, talosapi.CallTimeout)
		seen, err := look(looking)
		done()
		if err == nil && seen.serves && seen.boot != boot {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// wouldReboot asks Talos whether a configuration would reboot the node. Nothing is changed.
func (a apis) wouldReboot(ctx context.Context, c Change) (bool, error) {
	reply, err := a.Clients[c.Node].ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{
		Data: []byte(c.Configuration), Mode: machine.ApplyConfigurationRequest_AUTO, DryRun: true,
	})
	if err != nil {
		return false, err
	}
	for _, message := range reply.GetMessages() {
		return message.GetMode() == machine.ApplyConfigurationRequest_REBOOT, nil
	}
	return false, errors.New("the answer is empty")
}

// worker asks a worker for its boot and its kubelet.
func (a apis) worker(ctx context.Context, node string) (worker, error) {
	boot, err := a.Boot(ctx, node)
	if err != nil {
		return worker{}, err
	}
	status, err := a.stage(ctx, node)
	if err != nil {
		return worker{}, err
	}
	kubelet, err := a.Service(ctx, node, "kubelet")
	return worker{boot: boot, serves: status == runtime.MachineStageRunning && kubelet.State == running && kubelet.Healthy}, err
}
