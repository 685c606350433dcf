package reclaim

import (
	"context"
	"errors"
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/api/storage"

	"github.com/slipway-platform/slipway/internal/clients/talosapi"
)

// errHoldsTalos means that a machine has or had a configuration: waiting does not change that.
var errHoldsTalos = errors.New("it holds a Talos")

// errNoDisk means that the list of disks proves nothing: Talos sends what it has found so far.
var errNoDisk = errors.New("its Talos shows no disk")

// inMaintenance returns nil if the machine is in maintenance mode and no disk has Talos installed. A machine that lost its configuration
// still has Talos on a disk, and maybe data.
func (*proxmox) inMaintenance(ctx context.Context, address string) error {
	disks, configured, err := talosapi.DisksInMaintenance(ctx, address)
	if configured {
		return fmt.Errorf("%w with a configuration: it asks for a client certificate", errHoldsTalos)
	}
	if err != nil {
		return err
	}
	shown := errNoDisk
	for _, disk := range disks {
		if disk.GetSystemDisk() {
			return fmt.Errorf("%w, installed on %s", errHoldsTalos, disk.GetDeviceName())
		}
		if disk.GetType() != storage.Disk_CD && !disk.GetReadonly() { // read-only: the loop device with Talos's own file system
			shown = nil
		}
	}
	return shown
}
