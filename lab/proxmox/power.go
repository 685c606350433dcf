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

// power makes the handler of a POST to status/ACTION.
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
		m := q.c.machines[id]
		switch {
		case m == nil || m.node != q.node.Name:
			m = nil
			if kind == "qmreboot" || kind == "qmreset" {
				q.c.mu.Unlock()
				return nil, died("unable to find configuration file for VM %d on node '%s'", id, q.node.Name)
			}
		case m.guest == nil && (kind == "qmreboot" || kind == "qmreset"):
			q.c.mu.Unlock()
			return nil, died("VM %d not running", id)
		}
		q.c.mu.Unlock()
		return q.c.fork(job{
			node: q.node, kind: kind, id: strconv.Itoa(id), token: q.token, duration: q.c.cfg.Latency.Task, machine: m,
			work: work(q.c, q, id),
		})
	}
}

// present finds a VM that a task works on and that nothing else has locked.
func (c *Cluster) present(node string, id int) (*machine, vm.Guest, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := c.machineOn(node, id)
	if err != nil {
		return nil, nil, err
	}
	return m, m.guest, m.checkLock()
}

func start(c *Cluster, q *request, id int) func(context.Context, *task) error {
	return func(ctx context.Context, t *task) error {
		m, guest, err := c.present(q.node.Name, id)
		if err != nil {
			return err
		}
		if guest != nil {
			return m.errAlready()
		}
		return c.powerOn(m, t)
	}
}

// powerOn starts a VM with its configuration as it is now.
func (c *Cluster) powerOn(m *machine, t *task) error {
	c.mu.Lock()
	hw, err := c.assemble(m, t)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	c.boot(m, hw)
	return nil
}

// boot gives a VM a guest. A guest that ends by itself leaves the VM stopped.
func (c *Cluster) boot(m *machine, hw vm.Hardware) {
	guest := c.cfg.Firmware.PowerOn(hw)
	c.mu.Lock()
	m.guest, m.hardware, m.since = guest, hw, time.Now()
	c.mu.Unlock()
	c.log.Info("powered on", "vm", m.id, "name", hw.Name, "node", m.node)
	go func() {
		<-guest.Done()
		c.off(m, guest)
	}()
}

// off records that a guest has ended.
func (c *Cluster) off(m *machine, guest vm.Guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.guest == guest {
		m.guest = nil
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
		c.off(m, guest)
		return nil
	case <-timer.C:
		return errors.New("VM quit/powerdown failed - got timeout")
	}
}

func stop(c *Cluster, q *request, id int) func(context.Context, *task) error {
	return func(context.Context, *task) error {
		m, guest, err := c.present(q.node.Name, id)
		if err != nil || guest == nil {
			return err
		}
		return c.powerOff(m, guest)
	}
}

// halt asks a guest to shut down and waits for it.
func (c *Cluster) halt(ctx context.Context, q *request, m *machine, guest vm.Guest) error {
	timeout := defaultShutdown
	if s := number(q.form, "timeout", 0); s > 0 {
		timeout = time.Duration(s) * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := guest.Shutdown(ctx); err != nil {
		return fmt.Errorf("VM quit/powerdown failed - got timeout")
	}
	c.off(m, guest)
	return nil
}

func shutdown(c *Cluster, q *request, id int) func(context.Context, *task) error {
	return func(ctx context.Context, t *task) error {
		m, guest, err := c.present(q.node.Name, id)
		if err != nil || guest == nil {
			return err
		}
		if err := c.halt(ctx, q, m, guest); err != nil {
			if q.form.Get("forceStop") != "1" || ctx.Err() != nil {
				return err
			}
			t.logf("VM quit/powerdown failed - terminating now with SIGTERM")
			return c.powerOff(m, guest)
		}
		return nil
	}
}

// reboot shuts the guest down and powers the VM on with what its configuration has become since.
func reboot(c *Cluster, q *request, id int) func(context.Context, *task) error {
	return func(ctx context.Context, t *task) error {
		m, guest, err := c.present(q.node.Name, id)
		if err != nil {
			return err
		}
		if guest == nil {
			return fmt.Errorf("VM %d not running", id)
		}
		if err := c.halt(ctx, q, m, guest); err != nil {
			return err
		}
		return c.powerOn(m, t)
	}
}

// reset is the reset button: the same machine starts anew, without what its configuration has become since.
func reset(c *Cluster, q *request, id int) func(context.Context, *task) error {
	return func(context.Context, *task) error {
		m, guest, err := c.present(q.node.Name, id)
		if err != nil {
			return err
		}
		if guest == nil {
			return fmt.Errorf("VM %d not running", id)
		}
		hw := m.hardware
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
