package proxmox

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-platform/slipway/lab/vm"
)

// Changes of a running VM wait for its end, unless QEMU can make them at once. A VM's configuration is the running part (machine.config)
// and the waiting part (machine.pending, machine.deletions). The API shows them together unless it is asked for the current values.

// merged is the configuration with the changes that wait.
func (m *machine) merged() map[string]string {
	out := maps.Clone(m.config)
	for key := range m.deletions {
		delete(out, key)
	}
	maps.Copy(out, m.pending)
	return out
}

// applyPending makes the changes that wait. The VM is off. The caller holds the mutex.
func (c *Cluster) applyPending(m *machine) {
	for key := range m.deletions {
		if isDrive(key) {
			c.free(m.node, removeDrive(m.config, m.id, key))
		}
		delete(m.config, key)
	}
	for key, value := range m.pending {
		if old, ok := m.config[key]; ok && isDrive(key) && volumeOf(old) != volumeOf(value) {
			c.free(m.node, removeDrive(m.config, m.id, key))
		}
		m.config[key] = value
	}
	m.pending, m.deletions = map[string]string{}, map[string]bool{}
}

func volumeOf(drive string) string { return parseProperty(drive, "file").main }

// fastPlug are the options that mean nothing to QEMU.
var fastPlug = []string{
	"description", "hookscript", "lock", "migrate_downtime", "migrate_speed", "name", "onboot", "protection", "shares", "startup", "tags", "vmstatestorage",
	"cicustom", "cipassword", "citype", "ciupgrade", "ciuser", "nameserver", "searchdomain", "sshkeys",
}

// hotplugs tells whether a VM's option hotplug contains a feature. Memory and CPUs are never plugged in this simulation.
func (m *machine) hotplugs(feature string) bool {
	switch value, set := m.config["hotplug"]; {
	case !set, value == "1":
		return slices.Contains([]string{"network", "disk", "usb"}, feature)
	default:
		return slices.Contains(split(value), feature)
	}
}

// deletesNow tells whether an option can be deleted at once: always if the VM is off.
func (m *machine) deletesNow(key string) bool {
	kind := strings.TrimRight(key, "0123456789")
	switch {
	case m.guest == nil, slices.Contains(fastPlug, key), kind == "ipconfig", key == "cpuunits", key == "cpulimit", kind == "unused":
		return true
	case key == "balloon":
		return m.config[key] != "0"
	case key == "tablet", kind == "usb":
		return m.hotplugs("usb")
	case kind == "net":
		return m.hotplugs("network")
	}
	return (kind == "scsi" || kind == "virtio") && isDrive(key) && m.hotplugs("disk")
}

// setsNow tells whether an option can be set at once: always if the VM is off. An error means that QEMU tries and fails.
func (c *Cluster) setsNow(m *machine, key, value string) (bool, error) {
	kind := strings.TrimRight(key, "0123456789")
	old, had := m.config[key]
	switch {
	case m.guest == nil, slices.Contains(fastPlug, key), kind == "ipconfig", key == "cpuunits", key == "cpulimit":
		return true, nil
	case key == "balloon":
		return (old == "0") == (value == "0"), nil
	case key == "hotplug":
		return !strings.Contains(old+value, "memory") && !strings.Contains(old+value, "cpu"), nil
	case key == "agent":
		return had && sameAgent(old, value), nil
	case key == "tablet", kind == "usb":
		return m.hotplugs("usb"), nil
	case kind == "net":
		return c.plugsNIC(m, old, value)
	case isDrive(key):
		return plugsDrive(m, key, old, value)
	}
	return false, nil
}

// sameAgent tells whether two values of the option agent differ at most in what the running VM does not have to know.
func sameAgent(a, b string) bool {
	p, q := parseProperty(a, "enabled"), parseProperty(b, "enabled")
	delete(p.keys, "fstrim_cloned_disks")
	delete(q.keys, "fstrim_cloned_disks")
	return p.main == q.main && maps.Equal(p.keys, q.keys)
}

func (c *Cluster) plugsNIC(m *machine, old, value string) (bool, error) {
	n, was := parseNIC(value), parseNIC(old)
	same := old != "" && n.model == was.model && strings.EqualFold(n.mac, was.mac) && n.rest["queues"] == was.rest["queues"] &&
		n.rest["mtu"] == was.rest["mtu"] && n.bridge != "" && was.bridge != ""
	if !same && !m.hotplugs("network") {
		return false, nil
	}
	if host, err := c.node(m.node); err == nil && n.bridge != "" && !slices.Contains(host.Bridges, n.bridge) {
		return false, fmt.Errorf("hotplug problem - bridge '%s' does not exist\n", n.bridge) //nolint:staticcheck // PVE's text
	}
	return true, nil
}

// coldDrive are the options of a drive that QEMU takes only at its start.
var coldDrive = []string{"aio", "cache", "discard", "iothread", "product", "queues", "ro", "ssd", "vendor"}

func plugsDrive(m *machine, key, old, value string) (bool, error) {
	p, was := parseProperty(value, "file"), parseProperty(old, "file")
	switch {
	case strings.HasPrefix(key, "efidisk"), strings.HasPrefix(key, "tpmstate"):
		return false, nil
	case old == "":
		return m.hotplugs("disk") && !strings.HasPrefix(key, "ide") && !strings.HasPrefix(key, "sata"), nil
	case isCDROM(p) != isCDROM(was):
		return false, fmt.Errorf("hotplug problem - unable to change media type\n") //nolint:staticcheck // PVE's text
	case isCDROM(was):
		return true, nil // another medium
	case p.main != was.main:
		return m.hotplugs("disk") && !strings.HasPrefix(key, "ide") && !strings.HasPrefix(key, "sata"), nil
	}
	return !slices.ContainsFunc(coldDrive, func(k string) bool { return p.keys[k] != was.keys[k] }), nil
}

// plug makes a running VM's guest see changed disks: disks that are no longer in the configuration are gone, new disks are there. The
// caller holds the mutex.
func (c *Cluster) plug(m *machine) {
	if m.guest == nil {
		return
	}
	disks := map[string]*vm.Disk{}
	for key, d := range m.hardware.Disks {
		if value, ok := m.config[key]; ok && volumeOf(value) == d.Volume {
			disks[key] = d
		}
	}
	for _, key := range driveOrder {
		p := parseProperty(m.config[key], "file")
		if isCDROM(p) || disks[key] != nil || strings.HasPrefix(key, "efidisk") || strings.HasPrefix(key, "tpmstate") {
			continue
		}
		if v := c.volume(m.node, p.main); v != nil && v.disk != nil {
			v.disk.Size, v.disk.Serial = v.size, p.keys["serial"]
			disks[key] = v.disk
		}
	}
	if maps.Equal(disks, m.hardware.Disks) {
		return
	}
	m.hardware.Disks = disks
	m.guest.Plug(disks)
}

// getPending lists the configuration with the changes that wait.
func getPending(q *request) (any, error) {
	return q.withMachine(func(m *machine) (any, error) {
		out := []any{}
		for _, key := range slices.Sorted(maps.Keys(m.config)) {
			item := map[string]any{"key": key, "value": hide(key, m.config[key])}
			if value, ok := m.pending[key]; ok {
				item["pending"] = hide(key, value)
			}
			if m.deletions[key] {
				item["delete"] = 1
			}
			out = append(out, item)
		}
		for _, key := range slices.Sorted(maps.Keys(m.pending)) {
			if _, has := m.config[key]; !has {
				out = append(out, map[string]any{"key": key, "pending": hide(key, m.pending[key])})
			}
		}
		return out, nil
	}, "VM.Audit")
}

func hide(key, value string) string {
	if key == "cipassword" {
		return "**********"
	}
	return value
}

// revert adds to a change that the options in a list lose their waiting changes.
func (m *machine) revert(list string, set map[string]string, remove []string) []string {
	for _, key := range split(list) {
		if value, has := m.config[key]; has {
			set[key] = value
		} else if _, waits := m.pending[key]; waits {
			remove = append(remove, key)
		}
	}
	return remove
}

// checkBalloon refuses a balloon that is larger than the memory.
func (m *machine) checkBalloon(set map[string]string) error {
	_, balloons := set["balloon"]
	if _, memory := set["memory"]; !memory && !balloons {
		return nil
	}
	config := m.merged()
	maps.Copy(config, set)
	balloon, _ := strconv.Atoi(config["balloon"])
	if balloon > memoryMiB(config) {
		return internalError("balloon value too large (must be smaller than assigned memory)")
	}
	return nil
}

// followBoot adds to a change its effect on the boot order: a deleted drive leaves the order, a new CD-ROM drive is appended.
func (m *machine) followBoot(set map[string]string, remove []string) {
	order := bootOrder(m.config["boot"])
	if _, given := set["boot"]; given || len(order) == 0 || slices.Contains(remove, "boot") {
		return
	}
	former := slices.Clone(order)
	config := m.merged()
	order = slices.DeleteFunc(order, func(dev string) bool { _, has := config[dev]; return has && slices.Contains(remove, dev) })
	for _, key := range driveOrder {
		value, ok := set[key]
		if p := parseProperty(value, "file"); ok && isCDROM(p) && !isCloudInit(p) && !slices.Contains(order, key) {
			order = append(order, key)
		}
	}
	if !slices.Equal(order, former) {
		set["boot"] = "order=" + strings.Join(order, ";")
	}
}
