package proxmox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/lab/vm"
)

// moveParameters are those of a move. The lab ignores the limit of the speed.
var moveParameters = map[string]parameter{
	"node": {}, "vmid": {}, "disk": {check: oneOf(moveKeys...)}, "storage": {}, "format": {check: oneOf("raw", "qcow2", "vmdk")},
	"delete": {form: boolean}, "digest": {}, "bwlimit": {form: integer}, "target-vmid": {}, "target-disk": {}, "target-digest": {},
}

// moveKeys are the options that can be moved: drives, and disks that the VM does not use.
var moveKeys = func() []string {
	keys := slices.Clone(driveOrder)
	for i := range parameters["unused"].count {
		keys = append(keys, "unused"+strconv.Itoa(i))
	}
	return keys
}()

// gibibytesPerTask is how many GiB of a disk are copied in the time of a short task.
const gibibytesPerTask = 20

// moveDisk moves a disk of a VM to another storage, or copies it there, if the former volume is not to be deleted. As in qemu-server, the
// VM may run, and its configuration has no lock meanwhile: other tasks on the VM wait. The volume gets the next free number on its new
// storage. An error leaves the disk where it was.
func moveDisk(q *request) (any, error) {
	m, err := q.checked(func() error {
		if problems := moveProblems(q); len(problems) > 0 {
			return invalid(problems)
		}
		if q.form.Has("target-vmid") {
			return internalError("a move to another VM is not modelled by this simulation")
		}
		return q.token.require("/storage/"+q.form.Get("storage"), "Datastore.AllocateSpace")
	}, func(m *machine) error {
		_, err := q.checkMove(m)
		return err
	}, diskPrivilege)
	if err != nil {
		return nil, err
	}
	return q.forkVM("qmmove", m, func(ctx context.Context, t *task) error { return q.move(ctx, t, m) })
}

func moveProblems(q *request) map[string]string {
	problems := q.problems(moveParameters, "disk")
	one := ""
	switch storage, other := q.form.Get("storage") != "", q.form.Get("target-vmid") != ""; {
	case storage && other:
		one = "either set 'storage' or 'target-vmid', but not both"
	case !storage && !other:
		one = "both 'storage' and 'target-vmid' missing, either needs to be set"
	}
	if one != "" {
		problems["storage"], problems["target-vmid"] = one, one
	}
	return problems
}

// move is a disk on its way.
type move struct {
	key   string // of the drive
	drive property
	to    *Storage
	guest vm.Guest // nil if the VM is off
}

// unused tells whether the VM has the disk, but does not use it.
func (mv move) unused() bool { return strings.HasPrefix(mv.key, "unused") }

// checkMove is what Proxmox VE checks before it starts the task, and again in it. The caller holds the mutex.
func (q *request) checkMove(m *machine) (mv move, err error) {
	if err := m.checkLock(); err != nil {
		return mv, err
	}
	if err := q.checkDigest(m); err != nil {
		return mv, err
	}
	mv.key, mv.guest = q.form.Get("disk"), m.guest
	value, exists := m.config[mv.key]
	if !exists {
		return mv, internalError("disk '%s' does not exist", mv.key)
	}
	mv.drive = parseProperty(value, "file")
	if isCDROM(mv.drive) && !isCloudInit(mv.drive) {
		return mv, internalError("you can't move a cdrom")
	}
	from, _, hasStorage := strings.Cut(mv.drive.main, ":")
	if !hasStorage {
		return mv, internalError("unable to parse volume ID '%s'", mv.drive.main)
	}
	former, name, format := q.c.volume(m.node, mv.drive.main), q.form.Get("storage"), q.form.Get("format")
	if from == name && (format == "" || former == nil || former.format == format) {
		return mv, internalError("you can't move to the same storage with same format")
	}
	mv.to, err = q.c.storageOn(name, m.node)
	if err == nil && !mv.to.allows("images") {
		err = invalid(map[string]string{"storage": "storage '" + name + "' does not support vm images"})
	}
	return mv, err
}

// move is the work of the task, which has the VM's lock.
func (q *request) move(ctx context.Context, t *task, m *machine) error {
	c := q.c
	c.mu.Lock()
	_, err := c.machineOn(q.node.Name, m.id)
	var mv move
	if err == nil {
		mv, err = q.checkMove(m)
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	from, _, _ := strings.Cut(mv.drive.main, ":")
	t.logf("copying volume '%s' from current storage '%s' to target storage '%s'", mv.drive.main, from, mv.to.Name)
	copied, err := q.copyVolume(ctx, t, m, mv)
	c.mu.Lock()
	defer c.mu.Unlock()
	former := c.volume(m.node, mv.drive.main)
	if err == nil && former == nil { // somebody has deleted it meanwhile
		err = fmt.Errorf("volume '%s' does not exist", mv.drive.main)
	}
	if err != nil {
		if copied != nil {
			c.free(m.node, copied.id)
		}
		return fmt.Errorf("storage migration failed: %w", err)
	}
	if copied.disk != nil && former.disk != nil {
		// A guest that runs keeps its disk. What it wrote is there only once: a former volume that stays is empty here.
		copied.disk, former.disk = former.disk, copied.disk
		copied.disk.Volume, former.disk.Volume = copied.id, former.id
	}
	moved := property{main: copied.id, keys: mv.drive.keys}
	delete(moved.keys, "format")
	if !mv.unused() {
		moved.keys["size"] = formatSize(copied.size)
	}
	m.config[mv.key] = moved.String()
	if q.flag("delete") || isCloudInit(mv.drive) {
		t.log = append(t.log, "removing source volume '"+former.id+"' after successful copy")
		c.free(m.node, former.id)
		return nil
	}
	t.log = append(t.log, fmt.Sprintf("adding source volume '%s' as '%s' to config", former.id, addUnused(m.config, former.id)))
	return nil
}

// copyVolume makes the copy of a volume, in the time that it takes. With an error, it returns the copy that is not complete, if any.
func (q *request) copyVolume(ctx context.Context, t *task, m *machine, mv move) (*volume, error) {
	c := q.c
	if mv.guest != nil && strings.HasPrefix(mv.key, "tpmstate") {
		return nil, errors.New("cannot move TPM state while VM is running")
	}
	t.logf("create full clone of drive %s (%s)", mv.key, mv.drive.main)
	if err := c.awaitAllocation(ctx, mv.to, m.node); err != nil {
		return nil, err
	}
	copied, err := q.allocateCopy(t, m, mv)
	if err != nil {
		return nil, err
	}
	t.logf("allocated target volume '%s'", copied.id)
	if isCloudInit(mv.drive) {
		return copied, nil // Proxmox VE writes its content anew
	}
	var ended <-chan struct{} // QEMU copies its own disks
	if mv.guest != nil && !mv.unused() {
		ended = mv.guest.Done()
	}
	copying := time.NewTimer(c.slowed(t.kind, c.copyTime(copied.size)))
	defer copying.Stop()
	select {
	case <-copying.C:
		return copied, nil
	case <-ended:
		return copied, fmt.Errorf("block job (mirror) error: VM %d not running", m.id)
	case <-ctx.Done():
		return copied, errInterrupted
	}
}

// allocateCopy creates the volume for a copy.
func (q *request) allocateCopy(t *task, m *machine, mv move) (copied *volume, err error) {
	c := q.c
	c.mu.Lock()
	defer c.mu.Unlock()
	former := c.volume(m.node, mv.drive.main)
	switch {
	case former == nil:
		return nil, fmt.Errorf("volume '%s' does not exist", mv.drive.main)
	case isCloudInit(mv.drive):
		copied, err = c.allocateCloudInit(mv.to, m.node, m.id, q.copyFormat(t, mv.to, former))
	default:
		copied, err = c.allocate(mv.to, m.node, m.id, q.copyFormat(t, mv.to, former), copySize(mv, former))
	}
	if err != nil {
		return nil, err // the volume does not exist
	}
	return copied, nil
}

// copyFormat is the format of a copy: the one that is asked for, or else that of the volume, or else the storage's default.
func (q *request) copyFormat(t *task, to *Storage, former *volume) string {
	asked, format := q.form.Get("format"), to.formats()[0]
	if wanted := cmp.Or(asked, former.format); slices.Contains(to.formats(), wanted) {
		return wanted
	}
	if asked != "" {
		t.log = append(t.log, fmt.Sprintf("format '%s' is not supported by the target storage '%s' - using '%s' instead", asked, to.Name, format))
	}
	return format
}

// copySize is the size of a copy. An EFI disk and a TPM have the size that such a new disk has.
func copySize(mv move, former *volume) int64 {
	if strings.HasPrefix(mv.key, "efidisk") || strings.HasPrefix(mv.key, "tpmstate") {
		return diskSize(mv.to, mv.key, "")
	}
	return former.size
}

// copyTime is how long the copy of a disk takes.
func (c *Cluster) copyTime(size int64) time.Duration {
	return time.Duration(float64(c.cfg.Latency.Task) * float64(size) / (gibibytesPerTask << 30))
}
