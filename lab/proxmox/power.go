package proxmox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/slipway-platform/slipway/lab/vm"
)

const (
	defaultShutdown = 60 * time.Second // PVE's own default for shutdown and reboot
	powerOffTimeout = 10 * time.Second
)

// power returns the handler of a POST to status/ACTION.
func power(kind string, work func(c *Cluster, q *request, id int) func(context.Context, *task) error) func(*request) (any, error) {
	return func(q *request) (any, error) {
		id, err := parseID(q.r.PathValue("vmid"))
		if err != nil {
			return nil, err
		}
		if err := q.token.require("/vms/"+strconv.Itoa(id), "VM.PowerMgmt"); err != nil {
			return nil, err
		}
		q.c.mu.Lock()
		m, _ := q.c.machineOn(q.node.Name, id)
		running := m != nil && m.guest != nil
		q.c.mu.Unlock()
		switch restarts := kind == "qmreboot" || kind == "qmreset"; {
		case restarts && m == nil:
			return nil, internalError("unable to find configuration file for VM %d on node '%s'", id, q.node.Name)
		case restarts && !running:
			return nil, internalError("VM %d not running", id)
		}
		return q.c.fork(job{
			node: q.node, kind: kind, id: strconv.Itoa(id), token: q.token, duration: q.c.cfg.Latency.Task, machine: m,
			work: work(q.c, q, id),
		})
	}
}

// findUnlocked finds the VM of a task. It refuses a VM that is locked.
func (c *Cluster) findUnlocked(node string, id int) (*machine, vm.Guest, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := c.machineOn(node, id)
	if err != nil {
		return nil, nil, err
	}
	return m, m.guest, m.checkLock()
}

// findRunning is findUnlocked for tasks that need a VM that runs.
func (c *Cluster) findRunning(node string, id int) (*machine, vm.Guest, error) {
	m, guest, err := c.findUnlocked(node, id)
	if err == nil && guest == nil {
		err = fmt.Errorf("VM %d not running", id)
	}
	return m, guest, err
}

func start(c *Cluster, q *request, id int) func(context.Context, *task) error {
	return func(ctx context.Context, t *task) error {
		m, guest, err := c.findUnlocked(q.node.Name, id)
		if err != nil {
			return err
		}
		if guest != nil {
			return fmt.Errorf("VM %d already running", id)
		}
		return c.powerOn(m, t)
	}
}

// powerOn starts a VM with its configuration and the changes that wait.
func (c *Cluster) powerOn(m *machine, t *task) error {
	c.mu.Lock()
	c.applyPending(m)
	hw, err := c.assemble(m, t)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	c.boot(m, hw)
	return nil
}

// boot starts a guest in a VM. When the guest ends, the VM is stopped.
func (c *Cluster) boot(m *machine, hw vm.Hardware) {
	guest := c.cfg.Firmware.PowerOn(hw)
	c.mu.Lock()
	m.guest, m.hardware, m.since = guest, hw, time.Now()
	c.mu.Unlock()
	c.log.Info("powered on", "vm", m.id, "name", hw.Name, "node", m.node)
	go func() {
		<-guest.Done()
		c.guestEnded(m, guest)
	}()
}

// guestEnded records that a guest has ended, and makes the waiting changes.
func (c *Cluster) guestEnded(m *machine, guest vm.Guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.guest == guest {
		m.guest = nil
		if !m.resets {
			c.applyPending(m)
		}
		c.log.Info("powered off", "vm", m.id, "node", m.node)
	}
}

// powerOff ends a guest at once.
func (c *Cluster) powerOff(m *machine, guest vm.Guest) error {
	guest.PowerOff()
	timer := time.NewTimer(powerOffTimeout)
	defer timer.Stop()
	select {
	case <-guest.Done():
		c.guestEnded(m, guest)
		return nil
	case <-timer.C:
		return errors.New("VM quit/powerdown failed - got timeout")
	}
}

func stop(c *Cluster, q *request, id int) func(context.Context, *task) error {
	return func(context.Context, *task) error {
		m, guest, err := c.findUnlocked(q.node.Name, id)
		if err != nil || guest == nil {
			return err
		}
		return c.powerOff(m, guest)
	}
}

// shutdownGuest asks a guest to shut down and waits until it has.
func (c *Cluster) shutdownGuest(ctx context.Context, q *request, m *machine, guest vm.Guest) error {
	timeout := defaultShutdown
	if s := number(q.form, "timeout", 0); s > 0 {
		timeout = time.Duration(s) * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := guest.Shutdown(ctx); err != nil {
		return fmt.Errorf("VM quit/powerdown failed - got timeout")
	}
	c.guestEnded(m, guest)
	return nil
}

func shutdown(c *Cluster, q *request, id int) func(context.Context, *task) error {
	return func(ctx context.Context, t *task) error {
		m, guest, err := c.findUnlocked(q.node.Name, id)
		if err != nil || guest == nil {
			return err
		}
		if err := c.shutdownGuest(ctx, q, m, guest); err != nil {
			if q.form.Get("forceStop") != "1" || ctx.Err() != nil {
				return err
			}
			t.logf("VM quit/powerdown failed - terminating now with SIGTERM")
			return c.powerOff(m, guest)
		}
		return nil
	}
}

// reboot shuts the guest down. As in Proxmox VE, its task ends then, and a task of root starts the VM afterwards: qmeventd notices that the
// VM has stopped, and qm cleanup finds the request for a reboot. A shutdown that takes too long removes the request.
func reboot(c *Cluster, q *request, id int) func(context.Context, *task) error {
	return func(ctx context.Context, _ *task) error {
		m, guest, err := c.findRunning(q.node.Name, id)
		if err != nil {
			return err
		}
		if err := c.shutdownGuest(ctx, q, m, guest); err != nil {
			return err
		}
		_, err = c.fork(job{
			node: q.node, kind: "qmstart", id: strconv.Itoa(id), token: &Token{ID: "root@pam"}, duration: c.cfg.Latency.Task, machine: m,
			work: start(c, q, id),
		})
		return err
	}
}

// reset restarts the same hardware. Changes of the configuration since power-on do not take effect.
func reset(c *Cluster, q *request, id int) func(context.Context, *task) error {
	return func(context.Context, *task) error {
		m, guest, err := c.findRunning(q.node.Name, id)
		if err != nil {
			return err
		}
		resets := func(is bool) {
			c.mu.Lock()
			defer c.mu.Unlock()
			m.resets = is
		}
		resets(true)
		defer resets(false)
		c.mu.Lock()
		hw := m.hardware
		c.mu.Unlock()
		if err := c.powerOff(m, guest); err != nil {
			return err
		}
		c.boot(m, hw)
		return nil
	}
}

func getStatus(q *request) (any, error) {
	return q.withMachine(func(m *machine) (any, error) { return m.describeStatus(), nil }, "VM.Audit")
}
