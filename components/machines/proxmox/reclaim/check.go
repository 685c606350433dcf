package reclaim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/slipway-platform/slipway/internal/probe"
)

// oldest is the first major version of Proxmox VE that has every call and every privilege that the provider uses.
const oldest = 8

// Cluster is a cluster that is about to be created.
type Cluster struct {
	VMs       []VM   // all of its VMs
	Hosts     []Host // Proxmox nodes of the VMs that are not left out, each once
	ISO       string // storage of the boot image
	ISOShared bool   // the storage is declared as shared
}

// Check returns every reason why the cluster cannot be created; warn gets what may be one. It changes nothing, and runs before the first
// resource is created, so a refused run leaves no trace. A VM that Reclaim would remove is no reason to refuse, unless it is off: then its
// owner is unknown.
func Check(ctx context.Context, api API, cluster Cluster, warn func(string)) error {
	return api.askRecent(ctx, func(ctx context.Context, pve *proxmox) error {
		return errors.Join(checkVMs(ctx, pve, cluster.VMs), checkHosts(ctx, pve, cluster, warn))
	})
}

// askRecent asks a Proxmox VE that is recent enough, as ask does.
func (a API) askRecent(ctx context.Context, do func(context.Context, *proxmox) error) error {
	return a.ask(ctx, func(ctx context.Context, pve *proxmox) error {
		if err := checkVersion(ctx, pve); err != nil {
			return err
		}
		return do(ctx, pve)
	})
}

// checkVersion refuses a Proxmox VE that is too old.
func checkVersion(ctx context.Context, pve *proxmox) error {
	var running struct{ Version string }
	if err := pve.do(ctx, http.MethodGet, "version", &running); err != nil {
		return err
	}
	major, _, _ := strings.Cut(running.Version, ".")
	if number, err := strconv.Atoi(major); err == nil && number < oldest {
		return fmt.Errorf("proxmox.endpoint: Proxmox VE %s is too old; upgrade it to %d.0 or later", running.Version, oldest)
	}
	return nil
}

// checkVMs returns the problem of every VM whose id is taken, at the same time for all.
func checkVMs(ctx context.Context, pve host, vms []VM) error {
	guests, err := pve.locate(ctx)
	if err != nil {
		return err
	}
	problems := make([]error, len(vms))
	probe.Each(vms, func(i int, vm VM) {
		if _, exists := guests[vm.ID]; exists {
			problems[i] = vm.check(ctx, pve)
		}
	})
	return errors.Join(problems...)
}

func (v VM) check(ctx context.Context, pve host) error {
	found, err := v.awaitUnlocked(ctx, pve)
	switch {
	case err != nil || found == nil:
		return err
	case !v.matches(found):
		return v.taken(found)
	case found.later != "":
		return v.used(found)
	case found.status != "running":
		return v.unknown(found, errors.New("it is off; start it, if it was never configured"))
	}
	return v.awaitMaintenance(ctx, pve, found)
}
