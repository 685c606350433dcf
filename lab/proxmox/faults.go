package proxmox

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/lab/fault"
)

// unreached is what pveproxy answers on behalf of a host that it does not reach.
const unreached = "595 No route to host"

// firstProxyError is the first of the codes that pveproxy makes up for failed connections: 595 to 599. Their answers
// have no body.
const firstProxyError = 595

// faulty is the error that the fault ProxmoxError answers a request with, nil without one.
func (c *Cluster) faulty(r *http.Request) error {
	f, on := c.cfg.Faults.ActiveWithin(fault.ProxmoxError, r.Method+" "+strings.TrimPrefix(r.URL.Path, base))
	if !on {
		return nil
	}
	detail := f.Detail
	if detail == "" {
		detail = unreached
	}
	code, reason, err := fault.SplitStatus(detail)
	if err != nil { // not reached: checked when it was switched on
		return died("%s", err)
	}
	if reason == "" {
		reason = http.StatusText(code)
	}
	return &apiError{code: code, reason: reason}
}

// limited is a token without the privileges that the fault ProxmoxPermission takes away.
func (c *Cluster) limited(t Token) *Token {
	taken := func(p string) bool {
		_, on := c.cfg.Faults.Active(fault.ProxmoxPermission, p)
		return on
	}
	if !slices.ContainsFunc(Privileges, taken) {
		return &t
	}
	granted := t.Privileges
	if granted == nil {
		granted = Privileges
	}
	t.Privileges = slices.DeleteFunc(slices.Clone(granted), taken)
	return &t
}

// hang keeps a task running while the fault ProxmoxTaskHangs is on for its type.
func (c *Cluster) hang(ctx context.Context, kind string) error {
	if c.cfg.Faults == nil {
		return nil
	}
	for {
		changed := c.cfg.Faults.Changed()
		if _, on := c.cfg.Faults.Active(fault.ProxmoxTaskHangs, kind); !on {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errInterrupted
		}
	}
}

// full is whether a storage takes nothing any more.
func (c *Cluster) full(s *Storage) bool {
	_, on := c.cfg.Faults.Active(fault.DatastoreFull, s.Name)
	return on
}

// errFull is how an allocation fails on a storage of this type when there is no room.
func errFull(s *Storage, v *volume, free int64) error {
	_, name, _ := strings.Cut(v.id, ":")
	switch {
	case v.content == "iso":
		return fmt.Errorf("download failed: command '/usr/bin/wget --progress=dot:giga -O %s%s.tmp.dwnl' failed: exit code 3", isoDir(s), strings.TrimPrefix(name, "iso/"))
	case s.files():
		return fmt.Errorf("unable to create image: No space left on device")
	case s.Type == "lvmthin":
		return fmt.Errorf("lvcreate 'pve/%s' error:   Cannot create new thin volume, free space in thin pool pve/data reached threshold.", name)
	case s.Type == "zfspool":
		return fmt.Errorf("zfs error: cannot create '%s/%s': out of space", s.Name, name)
	case s.Type == "rbd":
		return fmt.Errorf("rbd create '%s' error: rbd: create error: (28) No space left on device", name)
	}
	return fmt.Errorf("lvcreate 'pve/%s' error:   Volume group \"pve\" has insufficient free space (%d extents): %d required.", name, free>>22, v.size>>22)
}

// swapMAC gives the first card of a VM another address while the fault VMWrongMAC is on, in its configuration too. It
// expects the mutex.
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

// otherMAC is a fixed address beside the one given, so that a VM keeps its wrong address however often it starts.
func otherMAC(mac string) string {
	const mark = "EE" // of the fifth byte
	parts := strings.Split(strings.ToUpper(mac), ":")
	if len(parts) == 6 {
		parts[4] = mark
	}
	return strings.Join(parts, ":")
}
