package proxmox

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// withMachine runs fn on the VM of a request, with the mutex held.
func (q *request) withMachine(fn func(*machine) (any, error), privileges ...string) (any, error) {
	var answer any
	_, err := q.checked(nil, func(m *machine) (err error) {
		answer, err = fn(m)
		return err
	}, privileges...)
	return answer, err
}

// checked returns the VM of a request, if check accepts it, which runs with the mutex held. As in Proxmox VE, a missing privilege comes
// before wrong parameters, and both before a missing VM.
func (q *request) checked(parameters func() error, check func(*machine) error, privileges ...string) (*machine, error) {
	id, err := parseID(q.r.PathValue("vmid"))
	if err != nil {
		return nil, err
	}
	if err := q.token.require("/vms/"+strconv.Itoa(id), privileges...); err != nil {
		return nil, err
	}
	if parameters != nil {
		if err := parameters(); err != nil {
			return nil, err
		}
	}
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	m, err := q.c.machineOn(q.node.Name, id)
	if err == nil {
		err = check(m)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

func listVMs(q *request) (any, error) {
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	out := []any{}
	for _, m := range q.c.sortedMachines() {
		if m.node == q.node.Name && q.token.has("VM.Audit") {
			out = append(out, m.describeStatus())
		}
	}
	return out, nil
}

func createVM(q *request) (any, error) {
	id, err := parseID(q.form.Get("vmid"))
	if err != nil {
		return nil, err
	}
	set, _, err := settings(q.form, "create")
	if err != nil {
		return nil, err
	}
	if q.form.Get("archive") != "" {
		return nil, internalError("archive is not modelled by this simulation")
	}
	if err := q.token.require("/vms/"+strconv.Itoa(id), "VM.Allocate"); err != nil {
		return nil, err
	}
	if err := q.checkPrivileges(id, set, nil); err != nil {
		return nil, err
	}
	if err := q.checkStorageAccess(id, set); err != nil {
		return nil, err
	}
	c := q.c
	m := &machine{id: id, node: q.node.Name, lock: "create", config: map[string]string{}, pending: map[string]string{}, deletions: map[string]bool{}, busy: make(chan struct{}, 1)}
	c.mu.Lock()
	if other := c.machines[id]; other != nil {
		c.mu.Unlock()
		return nil, internalError("unable to create VM %d - VM %d already exists on node '%s'", id, id, other.node)
	}
	c.machines[id] = m
	c.mu.Unlock()

	remove := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.freeAll(id)
		delete(c.machines, id)
	}
	upid, err := c.fork(job{
		node: q.node, kind: "qmcreate", id: strconv.Itoa(id), token: q.token, duration: c.cfg.Latency.Task, machine: m, undo: remove,
		work: func(ctx context.Context, t *task) error {
			if err := c.awaitAllocations(ctx, q.node.Name, set); err != nil {
				return fmt.Errorf("unable to create VM %d - %w", id, err)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			m.config["vmgenid"] = newUUID()
			m.config["smbios1"] = "uuid=" + newUUID()
			m.config["meta"] = fmt.Sprintf("creation-qemu=9.2.0,ctime=%d", time.Now().Unix())
			if err := c.change(m, set, nil); err != nil {
				return fmt.Errorf("unable to create VM %d - %w", id, err)
			}
			for _, key := range driveOrder {
				if value, ok := m.config[key]; ok && !isCDROM(parseProperty(value, "file")) {
					t.log = append(t.log, key+": successfully created disk '"+value+"'")
				}
			}
			m.lock = ""
			return nil
		},
	})
	if err != nil {
		remove()
		return nil, err
	}
	if q.form.Get("start") == "1" {
		if _, err := q.forkVM("qmstart", m, start(c, q, id)); err != nil {
			return nil, err
		}
	}
	return upid, nil
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// updateVM changes a configuration: PUT changes it at once, POST in a task. See pending.go for what a running VM takes over.
func updateVM(q *request) (any, error) {
	id, err := parseID(q.r.PathValue("vmid"))
	if err != nil {
		return nil, err
	}
	set, remove, err := settings(q.form, "update")
	if err != nil {
		return nil, err
	}
	if err := q.checkPrivileges(id, set, remove); err != nil {
		return nil, err
	}
	if err := q.checkStorageAccess(id, set); err != nil {
		return nil, err
	}
	c := q.c
	c.mu.Lock()
	m, err := c.machineOn(q.node.Name, id)
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	work := func(ctx context.Context, _ *task) error {
		if err := c.awaitAllocations(ctx, q.node.Name, set); err != nil {
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if _, err := c.machineOn(q.node.Name, id); err != nil {
			return err
		}
		return q.update(m, set, remove)
	}
	if q.r.Method == http.MethodPost {
		return q.forkVM("qmconfig", m, work)
	}
	if err := m.acquire(q.r.Context()); err != nil {
		return nil, err
	}
	defer m.release()
	return nil, work(q.r.Context(), nil)
}

// unlinkDisks takes disks out of a VM, as an update that deletes the options does.
func unlinkDisks(q *request) (any, error) {
	q.form.Set("delete", q.form.Get("idlist"))
	q.form.Del("idlist")
	return updateVM(q)
}

// renewCloudInit writes the cloud-init drive anew. The simulated drive always has what the configuration says.
func renewCloudInit(q *request) (any, error) {
	return q.withMachine(func(*machine) (any, error) { return nil, nil }, ciPrivilege)
}

func (q *request) update(m *machine, set map[string]string, remove []string) error {
	if err := m.checkLock(); err != nil {
		return err
	}
	if err := q.checkDigest(m); err != nil {
		return err
	}
	remove = m.revert(q.form.Get("revert"), set, remove)
	if err := m.checkBalloon(set); err != nil {
		return err
	}
	if err := checkBoot(m.merged(), set, remove); err != nil {
		return err
	}
	if m.config["protection"] == "1" {
		for _, key := range remove {
			if _, ok := m.config[key]; ok && (isDrive(key) || strings.HasPrefix(key, "unused")) {
				return internalError("can't remove drive '%s' - protection mode enabled", key)
			}
		}
	}
	m.followBoot(set, remove)
	return q.c.change(m, set, remove)
}

// checkDestroy refuses to destroy a VM that is protected, locked or running.
func checkDestroy(m *machine) error {
	switch {
	case m.config["protection"] == "1":
		return internalError("can't remove VM %d - protection mode enabled", m.id)
	case m.guest != nil:
		return internalError("VM %d is running - destroy failed", m.id)
	}
	return m.checkLock()
}

// destroyVM removes a VM with the disks in its configuration. With destroy-unreferenced-disks it also removes other
// disks of the VM, on every storage of the node.
func destroyVM(q *request) (any, error) {
	m, err := q.checked(nil, checkDestroy, "VM.Allocate")
	if err != nil {
		return nil, err
	}
	c := q.c
	return q.changeVM("qmdestroy", m, func(t *task) error {
		if err := checkDestroy(m); err != nil {
			return err
		}
		if q.form.Get("purge") == "1" {
			t.log = append(t.log, fmt.Sprintf("purging VM %d from related configurations..", m.id))
		}
		for key, value := range m.config {
			if p := parseProperty(value, "file"); isDrive(key) || strings.HasPrefix(key, "unused") {
				c.freeOwned(m, p.main)
			}
		}
		if q.form.Get("destroy-unreferenced-disks") == "1" {
			c.freeAll(m.id)
		}
		delete(c.machines, m.id)
		return nil
	})
}

// resizeVM enlarges a disk.
func resizeVM(q *request) (any, error) {
	key, asked := q.form.Get("disk"), q.form.Get("size")
	m, err := q.checked(nil, func(m *machine) error {
		if err := m.checkLock(); err != nil {
			return err
		}
		if _, ok := m.config[key]; !ok || !isDrive(key) {
			return internalError("disk '%s' does not exist", key)
		}
		if _, err := parseSize(strings.TrimPrefix(asked, "+")); err != nil {
			return invalid(map[string]string{"size": `value does not match the regex pattern`})
		}
		return nil
	}, diskPrivilege)
	if err != nil {
		return nil, err
	}
	c := q.c
	return q.changeVM("resize", m, func(*task) error {
		p := parseProperty(m.config[key], "file")
		v := c.volume(m.node, p.main)
		if v == nil || v.disk == nil {
			return fmt.Errorf("can't resize volume: %s", p.main)
		}
		size, err := parseSize(strings.TrimPrefix(asked, "+"))
		if err != nil {
			return err
		}
		if strings.HasPrefix(asked, "+") {
			size += v.size
		}
		if size < v.size {
			return fmt.Errorf("shrinking disks is not supported")
		}
		v.size = size
		if m.guest != nil && m.hardware.Disks[key] == v.disk {
			m.guest.Grown(key, size)
		}
		p.keys["size"] = formatSize(size)
		m.config[key] = p.String()
		return nil
	})
}
