package reclaim

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"time"
)

// waits are the options of a VM that wait until the VM was off, as far as the program declares them. Options that somebody else has changed
// may wait, and so may disks of another VM.
var waits = regexp.MustCompile(`^(agent|balloon|cores|cpu|machine|memory|numa|scsihw|sockets|(net|scsi)\d+)$`)

// Power reports whether a VM is off, and which changes of its options wait until the VM was off: an update that failed half-way leaves such
// changes, and Proxmox VE shows them as if they were in effect. A VM that does not exist is an error.
func Power(ctx context.Context, api API, id int) (off bool, waiting []string, err error) {
	err = api.ask(ctx, func(ctx context.Context, pve *proxmox) error {
		vm, err := pve.find(ctx, id)
		if err != nil {
			return err
		}
		var options []struct {
			Key            string
			Value, Pending any // a text or a number
			Delete         int // 0: it is not deleted
		}
		if err := pve.do(ctx, http.MethodGet, vmPath(vm.node, id)+"/pending", &options); err != nil {
			return err
		}
		for _, option := range options {
			others := func(disk any) bool { return disk == nil || foreign(disk, id) }
			if IsDisk(option.Key) && others(option.Value) && others(option.Pending) {
				continue
			}
			if (option.Pending != nil || option.Delete != 0) && waits.MatchString(option.Key) {
				waiting = append(waiting, option.Key)
			}
		}
		off = vm.status == "stopped"
		return nil
	})
	return off, waiting, err
}

// find returns a VM, wherever it is.
func (c *proxmox) find(ctx context.Context, id int) (*machine, error) {
	guests, err := c.locate(ctx)
	if err != nil {
		return nil, err
	}
	at, exists := guests[id]
	if !exists || at.container() {
		return nil, fmt.Errorf("VM %d does not exist", id)
	}
	return c.inspect(ctx, at.Node, id)
}

// How long a VM has to shut down, and how long the whole restart is waited for.
const (
	rebootTimeout  = 10 * time.Minute
	restartTimeout = rebootTimeout + DefaultTimeout
)

// Restart shuts a VM down, unless it is off, starts it, and waits until it runs. Proxmox VE ends the task of a reboot when the
// VM is off, and starts it afterwards.
func Restart(ctx context.Context, api API, id int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, restartTimeout, fmt.Errorf("gave up after %s", restartTimeout))
	defer cancel()
	pve, err := api.connect()
	if err != nil {
		return err
	}
	vm, err := pve.find(ctx, id)
	if err != nil {
		return err
	}
	action := fmt.Sprintf("/status/reboot?timeout=%d", int(rebootTimeout.Seconds()))
	if vm.status == "stopped" {
		action = "/status/start"
	}
	if err := pve.run(ctx, vm.node, id, http.MethodPost, action); err != nil {
		return err
	}
	return until(ctx, fmt.Sprintf("VM %d", id), func(ctx context.Context) (string, error) {
		switch now, err := pve.inspect(ctx, vm.node, id); {
		case err != nil:
			return err.Error(), nil
		case now.status != "running":
			return "it is " + now.status, nil
		}
		return "", nil
	})
}
