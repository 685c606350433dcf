package proxmox

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/slipway-platform/slipway/lab/vm"
)

// machine is a VM. The cluster's mutex guards its mutable fields; busy serializes the tasks on it.
type machine struct {
	id     int
	node   string
	config map[string]string // what it runs with, or would
	lock   string            // create, destroyed …; empty if none

	pending   map[string]string // changes that wait until the VM is off
	deletions map[string]bool   // options whose deletion waits until then
	resets    bool              // the guest's end is that of a reset: QEMU continues

	ha bool // the HA manager has it

	guest    vm.Guest    // nil while powered off
	hardware vm.Hardware // hardware at the last power-on
	since    time.Time   // of power-on

	busy chan struct{} // holds a token while a task runs on the VM
}

// acquire waits for the VM's lock.
func (m *machine) acquire(ctx context.Context) error {
	timer := time.NewTimer(lockTimeout)
	defer timer.Stop()
	select {
	case m.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errInterrupted
	case <-timer.C:
		return internalError("can't lock file '/var/lock/qemu-server/lock-%d.conf' - got timeout", m.id)
	}
}

// tryAcquire is acquire if nobody holds the machine.
func (m *machine) tryAcquire() bool {
	select {
	case m.busy <- struct{}{}:
		return true
	default:
		return false
	}
}

func (m *machine) release() { <-m.busy }

func (m *machine) checkLock() error {
	if m.lock != "" {
		return internalError("VM is locked (%s)", m.lock)
	}
	return nil
}

func (m *machine) name() string {
	if n := m.config["name"]; n != "" {
		return n
	}
	return "VM " + strconv.Itoa(m.id)
}

func (m *machine) status() string {
	if m.guest != nil {
		return "running"
	}
	return "stopped"
}

func (m *machine) uptime() int64 {
	if m.guest == nil {
		return 0
	}
	return int64(time.Since(m.since).Seconds()) + 1
}

func (m *machine) number(key string, def int) int {
	if n, err := strconv.Atoi(m.config[key]); err == nil {
		return n
	}
	return def
}

func (m *machine) cpus() int { return m.number("cores", 1) * m.number("sockets", 1) }

func (m *machine) memoryMiB() int { return memoryMiB(m.config) }

func memoryMiB(config map[string]string) int {
	if n, err := strconv.Atoi(parseProperty(config["memory"], "current").main); err == nil {
		return n
	}
	return 512
}

// resource is the VM in the list of cluster resources.
func (m *machine) resource() map[string]any {
	out := map[string]any{
		"id": "qemu/" + strconv.Itoa(m.id), "type": "qemu", "vmid": m.id, "node": m.node, "name": m.name(), "status": m.status(),
		"maxcpu": m.cpus(), "maxmem": int64(m.memoryMiB()) << 20, "maxdisk": m.diskSize(), "uptime": m.uptime(), "template": 0,
	}
	return m.addTagsAndLock(out)
}

// addTagsAndLock adds the tags and the lock to the description of a VM, if the VM has them.
func (m *machine) addTagsAndLock(out map[string]any) map[string]any {
	if tags := m.config["tags"]; tags != "" {
		out["tags"] = tags
	}
	if m.lock != "" {
		out["lock"] = m.lock
	}
	return out
}

// diskSize is the size of the first disk in the boot order, in bytes.
func (m *machine) diskSize() int64 {
	for _, key := range m.bootOrder() {
		if p := parseProperty(m.config[key], "file"); isDrive(key) && !isCDROM(p) {
			if size, err := parseSize(p.keys["size"]); err == nil {
				return size
			}
		}
	}
	return 0
}

func (m *machine) describeStatus() map[string]any {
	out := map[string]any{
		"vmid": m.id, "name": m.name(), "status": m.status(), "qmpstatus": m.status(), "cpus": m.cpus(),
		"maxmem": int64(m.memoryMiB()) << 20, "maxdisk": m.diskSize(), "uptime": m.uptime(), "ha": map[string]any{"managed": 0},
	}
	if m.agent() {
		out["agent"] = 1
	}
	if m.guest != nil {
		out["pid"] = 100000 + m.id
	}
	return m.addTagsAndLock(out)
}

// sortedMachines returns the machines by id. The caller holds the mutex.
func (c *Cluster) sortedMachines() []*machine {
	return slices.SortedFunc(maps.Values(c.machines), func(a, b *machine) int { return a.id - b.id })
}

// machineOn finds a VM on a node. The caller holds the mutex.
func (c *Cluster) machineOn(node string, id int) (*machine, error) {
	m := c.machines[id]
	if m == nil || m.node != node {
		return nil, errNoConfig(node, id)
	}
	return m, nil
}

// VMStatus is a VM in the output of `lab status`.
type VMStatus struct {
	ID        int       `json:"id"`
	Name      string    `json:"name"`
	Node      string    `json:"node"`
	Status    string    `json:"status"` // running or stopped
	Lock      string    `json:"lock,omitempty"`
	Cores     int       `json:"cores"`
	MemoryMiB int       `json:"memoryMiB"`
	Since     time.Time `json:"since,omitzero"` // of power-on
}

// VMs lists the cluster's VMs by id.
func (c *Cluster) VMs() []VMStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []VMStatus
	for _, m := range c.sortedMachines() {
		s := VMStatus{ID: m.id, Name: m.name(), Node: m.node, Status: m.status(), Lock: m.lock, Cores: m.cpus(), MemoryMiB: m.memoryMiB()}
		if m.guest != nil {
			s.Since = m.since
		}
		out = append(out, s)
	}
	return out
}

// parseID reads the VM id of a request.
func parseID(s string) (int, error) {
	id, err := strconv.Atoi(s)
	if err != nil || id < 100 || id > 999999999 {
		return 0, invalid(map[string]string{"vmid": "invalid format - value does not look like a valid VM ID"})
	}
	return id, nil
}
