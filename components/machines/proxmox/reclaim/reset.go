package reclaim

import (
	"context"
	"fmt"
	"net/http"
)

// Reset presses the reset button of a declared VM that runs. Any other VM with its id is refused.
func Reset(ctx context.Context, api API, vm VM) error {
	return api.ask(ctx, func(ctx context.Context, pve *proxmox) error { return vm.reset(ctx, pve) })
}

func (v VM) reset(ctx context.Context, pve host) error {
	found, err := v.awaitUnlocked(ctx, pve)
	switch {
	case err != nil:
		return err
	case found == nil || !v.matches(found):
		return fmt.Errorf("VM %d (%s) is not on Proxmox VE any more", v.ID, v.Name)
	case found.status != "running":
		return fmt.Errorf("VM %d (%s) on Proxmox node %s is %s", v.ID, v.Name, found.node, found.status)
	}
	return pve.run(ctx, found.node, v.ID, http.MethodPost, "/status/reset")
}
