package proxmox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/lab/fault"
	"github.com/slipway-platform/slipway/lab/vm"
)

// firstProxyError is the first of pveproxy's own status codes for failed connections, 595 to 599. Their answers have no
// body.
const firstProxyError = 595

// requestError is the error that the fault proxmox-error answers a request with; nil if the fault is off.
func (c *Cluster) requestError(r *http.Request) error {
	f, on := c.cfg.Faults.Active(fault.ProxmoxError, r.Method+" "+strings.TrimPrefix(r.URL.Path, base))
	if !on {
		return nil
	}
	if f.Detail == "" {
		return errUnreachable()
	}
	code, reason := f.Status()
	return &apiError{code: code, reason: reason}
}

// errUnreachable is what pveproxy answers for a node that it cannot reach.
func errUnreachable() error { return &apiError{code: firstProxyError, reason: "No route to host"} }

// gone tells whether the fault proxmox-node-gone is on for a node.
func (c *Cluster) gone(node string) bool { return c.cfg.Faults.IsActive(fault.ProxmoxNodeGone, node) }

// forgotten tells whether the Proxmox cluster has forgotten a node that is gone.
func (c *Cluster) forgotten(node string) bool {
	f, on := c.cfg.Faults.Active(fault.ProxmoxNodeGone, node)
	return on && f.Detail == fault.Forgotten
}

// loseNodes ends the VMs of nodes that are gone, until Close.
func (c *Cluster) loseNodes() {
	for {
		changed := c.cfg.Faults.Changed()
		for _, n := range c.cfg.Nodes {
			if c.gone(n.Name) {
				c.lose(n.Name)
			}
		}
		select {
		case <-c.ctx.Done():
			return
		case <-changed:
		}
	}
}

// lose ends the VMs of a node that is gone. If the Proxmox cluster has forgotten it, its VMs and what is on its own storages are no more.
// Disks on shared storages stay.
func (c *Cluster) lose(node string) {
	forgotten := c.forgotten(node)
	var guests []vm.Guest
	c.mu.Lock()
	for id, m := range c.machines {
		if m.node != node {
			continue
		}
		if m.guest != nil {
			guests = append(guests, m.guest)
		}
		if forgotten {
			delete(c.machines, id)
		}
	}
	for key := range c.volumes {
		if forgotten && key.location == node {
			c.remove(key)
		}
	}
	c.mu.Unlock()
	for _, guest := range guests {
		guest.PowerOff()
	}
}

// reported returns an entry of the list of cluster resources, without what its node does not report any more once the node is gone: Proxmox
// VE knows the other properties from the configuration of the Proxmox cluster.
func (c *Cluster) reported(entry map[string]any, byNode ...string) map[string]any {
	if c.gone(entry["node"].(string)) {
		entry["status"] = "unknown"
		for _, property := range byNode {
			delete(entry, property)
		}
	}
	return entry
}

// withoutLostPrivileges is t without the privileges that the fault proxmox-permission removes.
func (c *Cluster) withoutLostPrivileges(t Token) *Token {
	lost := func(p string) bool { return c.cfg.Faults.IsActive(fault.ProxmoxPermission, p) }
	if !slices.ContainsFunc(Privileges, lost) {
		return &t
	}
	granted := t.Privileges
	if granted == nil {
		granted = Privileges
	}
	t.Privileges = slices.DeleteFunc(slices.Clone(granted), lost)
	return &t
}

// awaitHang waits while the fault proxmox-task-hangs is on for a task type.
func (c *Cluster) awaitHang(ctx context.Context, kind string) error {
	if c.cfg.Faults.Wait(ctx, func() bool { return !c.cfg.Faults.IsActive(fault.ProxmoxTaskHangs, kind) }) != nil {
		return errInterrupted
	}
	return nil
}

// slowed is a task's duration, longer under the fault proxmox-task-slow.
func (c *Cluster) slowed(kind string, d time.Duration) time.Duration {
	if !c.cfg.Faults.IsActive(fault.ProxmoxTaskSlow, kind) {
		return d
	}
	return d * time.Duration(max(1, c.cfg.Latency.SlowFactor))
}

// taskError is the error that the fault proxmox-task-fails ends a task with; nil if the fault is off.
func (c *Cluster) taskError(j job) error {
	f, on := c.cfg.Faults.Active(fault.ProxmoxTaskFails, j.kind)
	if !on {
		return nil
	}
	return errors.New(cmp.Or(f.Detail, defaultTaskError(j)))
}

// defaultTaskError is a typical error of a task of this type.
func defaultTaskError(j job) string {
	switch j.kind {
	case "qmcreate":
		return fmt.Sprintf("unable to create VM %s - lvcreate 'pve/vm-%s-disk-0' error:   Cannot create new thin volume, "+
			"free space in thin pool pve/data reached threshold.", j.id, j.id)
	case "qmstart":
		return "start failed: QEMU exited with code 1"
	case "qmstop", "qmshutdown", "qmreboot":
		return "VM quit/powerdown failed - got timeout"
	case "qmdestroy", "qmconfig":
		return fmt.Sprintf("can't lock file '/var/lock/qemu-server/lock-%s.conf' - got timeout", j.id)
	case "qmmove":
		return "storage migration failed: copy failed: command '/usr/bin/qemu-img convert -p -n' failed: exit code 1"
	case "download":
		return "download failed: command '/usr/bin/wget --progress=dot:giga' failed: exit code 4"
	}
	return "unexpected status"
}

// full tells whether the fault datastore-full is on for a storage.
func (c *Cluster) full(s *Storage) bool { return c.cfg.Faults.IsActive(fault.DatastoreFull, s.Name) }

// slowAllocation is how long a storage under the fault datastore-slow takes for a volume by default: with a few VMs at once, the last ones
// wait for the storage's lock for longer than lockTimeout.
const slowAllocation = 4 * time.Second

// allocationTime is how long a storage takes for a new volume, longer under the fault datastore-slow.
func (c *Cluster) allocationTime(s *Storage) time.Duration {
	f, on := c.cfg.Faults.Active(fault.DatastoreSlow, s.Name)
	if !on {
		return c.cfg.Latency.Task / 10
	}
	takes, err := time.ParseDuration(f.Detail)
	if err != nil {
		return slowAllocation
	}
	return takes
}

// errNoSpace is the error of an allocation on a storage of this type without enough space.
func errNoSpace(s *Storage, v *volume, free int64) error {
	_, name, _ := strings.Cut(v.id, ":")
	switch {
	case v.content == "iso":
		return fmt.Errorf("download failed: command '/usr/bin/wget --progress=dot:giga -O %s%s.tmp.dwnl' failed: exit code 3",
			isoDir(s), strings.TrimPrefix(name, "iso/"))
	case s.files():
		return fmt.Errorf("unable to create image: No space left on device")
	case s.Type == "lvmthin":
		return fmt.Errorf("lvcreate 'pve/%s' error:   Cannot create new thin volume, free space in thin pool pve/data reached threshold.", name)
	case s.Type == "zfspool":
		return fmt.Errorf("zfs error: cannot create '%s/%s': out of space", s.Name, name)
	case s.Type == "rbd":
		return fmt.Errorf("rbd create '%s' error: rbd: create error: (28) No space left on device", name)
	}
	return fmt.Errorf("lvcreate 'pve/%s' error:   Volume group \"pve\" has insufficient free space (%d extents): %d required.",
		name, free>>22, v.size>>22)
}

// swapMAC gives the first network card of a VM another MAC address, also in its configuration, if the fault
// vm-wrong-mac is on. The caller holds the mutex.
func (c *Cluster) swapMAC(m *machine) {
	f, on := c.cfg.Faults.Active(fault.VMWrongMAC, m.name())
	value, ok := m.config["net0"]
	if !on || !ok {
		return
	}
	n := parseNIC(value)
	if n.mac = strings.ToUpper(f.Detail); n.mac == "" {
		n.mac = otherMAC(parseNIC(value).mac)
	}
	m.config["net0"] = n.String()
}

// otherMAC derives an address from the given one, so that a VM has the same wrong address at every start.
func otherMAC(mac string) string {
	const fifthByte = "EE"
	parts := strings.Split(strings.ToUpper(mac), ":")
	if len(parts) == 6 {
		parts[4] = fifthByte
	}
	return strings.Join(parts, ":")
}
