// Package reclaim removes the VM that an interrupted run has left on Proxmox VE, so that the next run can create it.
//
// A run that is killed while it creates a VM leaves a VM that no state contains. Every later run would fail, because the VM id is
// taken. Reclaim removes such a VM only if no data can be lost: it has the name and description of the declared VM, its Talos is in
// maintenance mode, and no disk has Talos installed, so it never had a configuration. Any other VM is refused with a remedy. Check
// does the same for all VMs of a new cluster at once, and changes nothing. Remove removes such VMs, and all images, of a cluster that is
// destroyed. Eject prepares a VM for its migration, Reset resets a VM, and Power and Restart repair a VM that a failed update has left half
// changed. The package imports no Pulumi.
package reclaim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// DefaultTimeout is the longest wait for one VM. It covers the boot of a VM that was created and never started.
const DefaultTimeout = 3 * time.Minute

// VM is a VM that is about to be created.
type VM struct {
	Host        string `json:"host"`        // Proxmox node
	ID          int    `json:"id"`          // VM id
	Name        string `json:"name"`        // VM name
	Description string `json:"description"` // the VM's description, by which a leftover is recognised
	Address     string `json:"address"`     // address at which Talos's maintenance API answers once the VM runs
}

// Reclaim makes sure that Proxmox VE is recent enough and that no VM has the id. If none has, it only reads.
func Reclaim(ctx context.Context, api API, vm VM) error {
	return api.askRecent(ctx, func(ctx context.Context, pve *proxmox) error { return freeID(ctx, pve, vm) })
}

// ask connects to Proxmox VE, and ends what is asked after DefaultTimeout.
func (a API) ask(ctx context.Context, do func(context.Context, *proxmox) error) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	pve, err := a.connect()
	if err != nil {
		return err
	}
	return do(ctx, pve)
}

// limited returns a context that ends after DefaultTimeout.
func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, DefaultTimeout, fmt.Errorf("gave up after %s", DefaultTimeout))
}

// host is the part of Proxmox's API that Reclaim uses, and the maintenance API of Talos in its VMs.
type host interface {
	locate(ctx context.Context) (guests map[int]guest, err error)
	inspect(ctx context.Context, node string, id int) (*machine, error)
	run(ctx context.Context, node string, id int, method, action string) error

	// inMaintenance returns nil if the machine is in maintenance mode and no disk has Talos installed.
	inMaintenance(ctx context.Context, address string) error
}

// freeID removes what an interrupted creation of the VM has left; the id is free then.
func freeID(ctx context.Context, pve host, vm VM) error {
	found, err := vm.awaitUnlocked(ctx, pve)
	if err != nil || found == nil {
		return err
	}
	if !vm.matches(found) {
		return vm.taken(found)
	}
	return vm.deleteUnconfigured(ctx, pve, found)
}

// deleteUnconfigured deletes the VM once it was seen in maintenance mode without a Talos on its disks. A VM that is off is started first,
// and shut down again if it is not deleted: somebody may keep it, for its data.
func (v VM) deleteUnconfigured(ctx context.Context, pve host, found *machine) (err error) {
	if found.later != "" {
		return v.used(found)
	}
	started, err := v.start(ctx, pve, found)
	if started {
		defer func() {
			if err != nil {
				err = v.shutDown(ctx, pve, found, err)
			}
		}()
	}
	if err != nil {
		return err
	}
	if err := v.awaitMaintenance(ctx, pve, found); err != nil {
		return err
	}
	return v.stopAndDelete(ctx, pve, found)
}

// How long a machine has to shut down before Proxmox ends it, and how long that is waited for. After an interrupt, Pulumi kills the process
// after a few seconds; Proxmox goes on.
const (
	offTimeout         = time.Minute
	offWait            = offTimeout + 10*time.Second
	offWaitInterrupted = 4 * time.Second
)

// shutDown shuts the VM down for a reason, also after an interrupt. It returns the reason, and what became of the VM.
func (v VM) shutDown(ctx context.Context, pve host, found *machine, why error) error {
	wait := offWait
	if errors.Is(ctx.Err(), context.Canceled) {
		wait = offWaitInterrupted
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait)
	defer cancel()
	action := fmt.Sprintf("/status/shutdown?forceStop=1&timeout=%d", int(offTimeout.Seconds()))
	if err := pve.run(ctx, found.node, v.ID, http.MethodPost, action); err != nil {
		return fmt.Errorf("%w; it was off, and runs now: %w", why, err)
	}
	return fmt.Errorf("%w; it was off, and is off again", why)
}

// stopAndDelete stops the VM and deletes it with its disks.
func (v VM) stopAndDelete(ctx context.Context, pve host, found *machine) error {
	if err := pve.run(ctx, found.node, v.ID, http.MethodPost, "/status/stop"); err != nil {
		return err
	}
	return pve.run(ctx, found.node, v.ID, http.MethodDelete, "?purge=1&destroy-unreferenced-disks=1")
}

// taken refuses a VM or container that is not the declared VM.
func (v VM) taken(found *machine) error {
	if found.container {
		return fmt.Errorf("vmId: %d is taken by the container %q on Proxmox node %s; choose another id, or remove that container",
			v.ID, found.name, found.node)
	}
	return fmt.Errorf("vmId: %d is taken by %q on Proxmox node %s; choose another id, or remove that VM", v.ID, found.name, found.node)
}

// awaitMaintenance waits until the VM was seen in maintenance mode without a Talos on its disks.
func (v VM) awaitMaintenance(ctx context.Context, pve host, found *machine) error {
	err := until(ctx, "Talos's maintenance mode", func(ctx context.Context) (string, error) {
		err := pve.inMaintenance(ctx, v.Address)
		if err == nil || errors.Is(err, errHoldsTalos) {
			return "", err
		}
		return err.Error(), nil
	})
	if err != nil {
		return v.unknown(found, err)
	}
	return nil
}

// errMayHoldData means that a VM stays.
var errMayHoldData = errors.New("it may hold data")

// unknown refuses a VM that looks like the declared one, and may belong to another checkout or a lost state.
func (v VM) unknown(found *machine, why error) error {
	return fmt.Errorf("VM %d (%s) on Proxmox node %s is not in this stack's state, and was not seen in Talos's maintenance mode: "+
		"%w; use the backend and stack whose state has it, import it, or remove it by hand: %w", v.ID, v.Name, found.node, errMayHoldData, why)
}

// used refuses a VM that somebody has used since it was created, whatever its Talos shows.
func (v VM) used(found *machine) error {
	return fmt.Errorf("VM %d (%s) on Proxmox node %s is not in this stack's state, and has %s, which no interrupted creation leaves: %w; use "+
		"the backend and stack whose state has it, import it, or remove it by hand", v.ID, v.Name, found.node, found.later, errMayHoldData)
}

// matches reports whether a machine is a VM with the declared name and description. It may be on another Proxmox node than the declared
// one: a pin or maintenance may have come since it was created.
func (v VM) matches(found *machine) bool {
	return !found.container && found.name == v.Name && found.description == v.Description
}

// creating is Proxmox's lock on a VM that has no name and no description yet.
const creating = "create"

// awaitUnlocked returns the machine with the id. It waits until no operation holds a lock on a VM: a task continues after its client has
// ended. It returns nil if nothing has the id.
func (v VM) awaitUnlocked(ctx context.Context, pve host) (found *machine, err error) {
	err = until(ctx, fmt.Sprintf("VM %d", v.ID), func(ctx context.Context) (string, error) {
		found = nil
		guests, err := pve.locate(ctx)
		at, exists := guests[v.ID]
		if err != nil || !exists {
			return "", err
		}
		if at.container() {
			found = &machine{container: true, node: at.Node, name: at.Name}
			return "", nil
		}
		if found, err = pve.inspect(ctx, at.Node, v.ID); err != nil {
			return retry(err)
		}
		if found.lock == creating || found.lock != "" && v.matches(found) {
			return fmt.Sprintf("VM %d on Proxmox node %s stays locked (%s); unlock or remove it by hand", v.ID, at.Node, found.lock), nil
		}
		return "", nil
	})
	return found, err
}

// start starts the VM unless it runs. The interrupted run may have requested the start, too, so an error is ignored if the VM runs by
// then. What Proxmox cannot start now may start later, such as without the memory or the lock of another VM. If it does not, it may hold
// data. After an interrupt the VM may be started, too: Proxmox goes on with what was requested.
func (v VM) start(ctx context.Context, pve host, found *machine) (started bool, err error) {
	if found.status == "running" {
		return false, nil
	}
	var failed *taskError // of the last attempt
	err = until(ctx, fmt.Sprintf("the start of VM %d", v.ID), func(ctx context.Context) (string, error) {
		failed = nil
		err := pve.run(ctx, found.node, v.ID, http.MethodPost, "/status/start")
		if started = err == nil || ctx.Err() != nil; started {
			return "", err
		}
		switch now, again := pve.inspect(ctx, found.node, v.ID); {
		case again == nil && now.status == "running":
			return "", nil
		case !errors.As(err, &failed):
			return "", err
		}
		return err.Error(), nil
	})
	if err != nil && !started && failed != nil {
		err = v.unknown(found, err)
	}
	return started, err
}
