package proxmox

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/lab/vm"
)

// migrateParameters are those of a migration. The lab ignores options that only change the speed.
var migrateParameters = map[string]parameter{
	"node": {}, "vmid": {}, "target": {}, "online": {form: boolean}, "force": {form: boolean}, "migration_type": {}, "migration_network": {},
	"bwlimit": {}, "targetstorage": {}, "with-local-disks": {form: boolean},
}

// migrateVM moves a VM to another node of the cluster: a running one stays on. As in qemu-server, volumes on shared storages stay
// where they are, local disks are copied, and a CD drive with a local image is refused. Volumes keep their names. For a VM that the HA
// manager has, the task ends before the VM has moved.
func migrateVM(q *request) (any, error) {
	c, target, ha := q.c, q.form.Get("target"), false
	m, err := q.checked(func() error {
		if problems := q.problems(migrateParameters, "target"); len(problems) > 0 {
			return invalid(problems)
		}
		if target == q.node.Name {
			return invalid(map[string]string{"target": "target is local node."})
		}
		if !slices.ContainsFunc(c.nodes(), func(n *Node) bool { return n.Name == target }) {
			return internalError("no such cluster node '%s'", target)
		}
		if q.form.Get("targetstorage") != "" {
			return internalError("targetstorage is not modelled by this simulation")
		}
		return nil
	}, func(m *machine) error {
		ha = m.ha
		return c.checkMigration(m, target, q.flag("online"))
	}, "VM.Migrate")
	if err != nil {
		return nil, err
	}
	if ha {
		return q.changeVM("hamigrate", m, func(t *task) error {
			t.log = append(t.log, fmt.Sprintf("Requesting HA migration for VM %d to node %s", m.id, target))
			c.requestMigration(m, target)
			return nil
		})
	}
	return q.changeVM("qmigrate", m, func(t *task) error {
		return c.migration(t, m, target, q.flag("online"), q.flag("with-local-disks"))
	})
}

// migration is the work of a task that migrates a VM. The caller holds the mutex.
func (c *Cluster) migration(t *task, m *machine, target string, online, localDisks bool) error {
	t.log = append(t.log, fmt.Sprintf("starting migration of VM %d to node '%s'", m.id, target))
	if err := c.migrate(t, m, target, online, localDisks); err != nil {
		t.log = append(t.log, "ERROR: migration aborted: "+err.Error())
		return errors.New("migration aborted") // the reason is in the log only
	}
	t.log = append(t.log, "migration finished successfully")
	return nil
}

// flag returns a boolean parameter.
func (q *request) flag(key string) bool { return truthy(q.form.Get(key)) }

// checkMigration is what Proxmox VE checks before it starts the task. The caller holds the mutex.
func (c *Cluster) checkMigration(m *machine, target string, online bool) error {
	if err := m.checkLock(); err != nil {
		return err
	}
	if m.guest != nil && !online {
		return internalError("can't migrate running VM without --online")
	}
	for _, key := range driveOrder {
		name, _, hasStorage := strings.Cut(parseProperty(m.config[key], "file").main, ":")
		if !hasStorage {
			continue
		}
		if _, err := c.storageOn(name, target); err != nil {
			return err
		}
	}
	return nil
}

// migrate moves a VM or leaves it as it is. The caller holds the mutex.
func (c *Cluster) migrate(t *task, m *machine, target string, online, localDisks bool) error {
	if err := c.checkMigration(m, target, online); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(m.config)) {
		device := strings.TrimRight(key, "0123456789")
		serial := device == "serial" && m.config[key] != "socket" // a socket is created anew on the target
		if serial || device == "usb" || device == "hostpci" || device == "parallel" {
			return fmt.Errorf("can't migrate VM which uses local devices: %s", key)
		}
	}
	local, err := c.localVolumes(t, m, localDisks)
	if err != nil {
		return fmt.Errorf("Problem found while scanning volumes - %w", err)
	}
	from := m.node
	if err := c.moveVolumes(local, from, target); err != nil {
		return err
	}
	m.node = target
	if m.guest == nil {
		return nil
	}
	hw, err := c.assemble(m, t) // as the target starts the VM, to receive it
	if err != nil {
		m.node = from
		return errors.Join(err, c.moveVolumes(local, target, from))
	}
	m.hardware.Host = hw.Host
	m.guest.Moved(target)
	return nil
}

// localVolumes returns the VM's volumes that are copied to another node, or refuses what cannot be copied.
func (c *Cluster) localVolumes(t *task, m *machine, localDisks bool) (local []string, err error) {
	var refused []string
	for _, key := range slices.Sorted(maps.Keys(m.config)) {
		if !isDrive(key) && !strings.HasPrefix(key, "unused") {
			continue
		}
		p := parseProperty(m.config[key], "file")
		if isCDROM(p) && p.main == "cdrom" {
			refused = append(refused, "can't migrate local cdrom drive")
			continue
		}
		name, _, hasStorage := strings.Cut(p.main, ":")
		if !hasStorage {
			continue
		}
		if s, err := c.storage(name); err != nil || s.Shared {
			continue
		}
		switch generated := isCloudInit(p) || strings.HasPrefix(key, "tpmstate"); {
		case c.volume(m.node, p.main) == nil:
			refused = append(refused, fmt.Sprintf("can't migrate local disk '%s': unable to determine size for volume '%s'", p.main, p.main))
		case isCDROM(p) && !isCloudInit(p):
			refused = append(refused, fmt.Sprintf("can't migrate local disk '%s': local cdrom image", p.main))
		case c.volume(m.node, p.main).owner != m.id && !isCDROM(p):
			refused = append(refused,
				fmt.Sprintf("can't migrate local disk '%s': owned by other VM (owner = VM %d)", p.main, c.volume(m.node, p.main).owner))
		case isDrive(key) && !generated && m.guest != nil && !localDisks:
			refused = append(refused,
				fmt.Sprintf("can't migrate local disk '%s': can't live migrate attached local disks without with-local-disks option", p.main))
		default:
			local = append(local, p.main)
		}
	}
	t.log = append(t.log, refused...)
	if len(refused) > 0 {
		return nil, errors.New("can't migrate VM - check log")
	}
	return local, nil
}

// moveVolumes copies local volumes to another node and removes the originals, all or none. The caller holds the mutex.
func (c *Cluster) moveVolumes(ids []string, from, to string) error {
	for i, id := range ids {
		v := c.volume(from, id)
		s, err := c.storage(v.storage)
		if err == nil {
			err = c.put(s, to, v)
		}
		if err != nil {
			return errors.Join(err, c.moveVolumes(ids[:i], to, from))
		}
		c.free(from, id)
	}
	return nil
}

// Moved implements vm.Guest.
func (*idleGuest) Moved(string) {}

var _ vm.Guest = (*idleGuest)(nil)
