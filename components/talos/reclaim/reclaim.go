// Package reclaim removes what an interrupted creation of a VM has left on Proxmox VE, so that it can be made anew.
//
// A run that is killed while a VM is being created leaves a VM that no state knows, and every later run would fail, for
// the VM id is taken. Reclaim removes such a VM if it is certain that nothing is lost: it bears this node's description,
// Talos on it is in maintenance mode, and no disk has a Talos installed, which is to say that it was never given a
// configuration. Any other VM is refused with a remedy. It imports no Pulumi.
package reclaim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// DefaultTimeout is the longest wait for one VM: it covers the boot of one that was made and never started.
const DefaultTimeout = 3 * time.Minute

// VM says what is about to be created.
type VM struct {
	Host        string // Proxmox node
	ID          int    // VM id
	Name        string // VM name
	Description string // the VM's description, by which a leftover is known
	Address     string // address at which Talos's maintenance API answers once the VM runs
}

// Reclaim makes sure that no VM has the id. Without one it does nothing, and costs one request.
func Reclaim(ctx context.Context, api API, vm VM) error {
	ctx, cancel := context.WithTimeoutCause(ctx, DefaultTimeout, fmt.Errorf("gave up after %s", DefaultTimeout))
	defer cancel()
	pve, err := api.connect()
	if err != nil {
		return err
	}
	return reclaim(ctx, pve, vm, inMaintenance)
}

// host is what Reclaim needs of Proxmox.
type host interface {
	locate(ctx context.Context, id int) (node string, err error)
	inspect(ctx context.Context, node string, id int) (*machine, error)
	run(ctx context.Context, node string, id int, method, action string) error
}

func reclaim(ctx context.Context, pve host, vm VM, maintenance func(ctx context.Context, address string) error) error {
	left, err := vm.settled(ctx, pve)
	if err != nil || left == nil {
		return err
	}
	if !vm.owns(left) {
		return fmt.Errorf("vmId: %d is taken by %q on Proxmox node %s; choose another id, or remove that VM", vm.ID, left.name, left.node)
	}
	if err := vm.started(ctx, pve, left); err != nil {
		return err
	}
	if err := until(ctx, func() (bool, error) {
		err := maintenance(ctx, vm.Address)
		return err == nil || errors.Is(err, errHoldsTalos), err
	}); err != nil {
		return fmt.Errorf("VM %d (%s) on Proxmox node %s is in no state of this stack, and was not seen in Talos's maintenance mode: "+
			"it may hold data; import it, or remove it by hand: %w", vm.ID, vm.Name, left.node, err)
	}
	if err := pve.run(ctx, left.node, vm.ID, http.MethodPost, "/status/stop"); err != nil {
		return err
	}
	return pve.run(ctx, left.node, vm.ID, http.MethodDelete, "?purge=1&destroy-unreferenced-disks=1")
}

// owns tells whether a VM is one that was made for this node.
func (v VM) owns(left *machine) bool {
	return left.node == v.Host && left.name == v.Name && left.description == v.Description
}

// creating is Proxmox's lock on a VM that has no name and no description yet.
const creating = "create"

// settled looks the VM up once Proxmox is done with what it is doing to it: a task goes on when its client is gone. It is
// nil where there is none.
func (v VM) settled(ctx context.Context, pve host) (left *machine, err error) {
	err = until(ctx, func() (bool, error) {
		left = nil
		node, err := pve.locate(ctx, v.ID)
		if err != nil || node == "" {
			return true, err
		}
		if left, err = pve.inspect(ctx, node, v.ID); err != nil {
			return !passing(err), err
		}
		if left.lock == creating || left.lock != "" && v.owns(left) {
			return false, fmt.Errorf("VM %d on Proxmox node %s stays locked (%s); unlock or remove it by hand", v.ID, node, left.lock)
		}
		return true, nil
	})
	return left, err
}

// started has the VM run. The interrupted run may have asked for it, too, and come first.
func (v VM) started(ctx context.Context, pve host, left *machine) error {
	if left.status == "running" {
		return nil
	}
	err := pve.run(ctx, left.node, v.ID, http.MethodPost, "/status/start")
	if err == nil {
		return nil
	}
	if now, again := pve.inspect(ctx, left.node, v.ID); again == nil && now.status == "running" {
		return nil
	}
	return err
}
