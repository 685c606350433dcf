package reclaim

import (
	"context"
	"fmt"
)

// Stopped reports whether a VM is off. A VM that does not exist is an error.
func Stopped(ctx context.Context, api API, id int) (bool, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	pve, err := api.connect()
	if err != nil {
		return false, err
	}
	guests, err := pve.locate(ctx)
	if err != nil {
		return false, err
	}
	at, exists := guests[id]
	if !exists || at.container() {
		return false, fmt.Errorf("VM %d does not exist", id)
	}
	vm, err := pve.inspect(ctx, at.Node, id)
	if err != nil {
		return false, err
	}
	return vm.status == "stopped", nil
}
