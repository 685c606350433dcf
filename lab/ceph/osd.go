package ceph

import (
	"errors"
	"fmt"
	"time"
)

// osd is an OSD that was made. It keeps its number while it does not run.
type osd struct {
	host string
	disk any // see CreateOSD

	up, ran   bool
	misses    bool      // it lacks copies that were written while it was down
	recovered time.Time // when it has them, if an OSD that misses nothing runs until then
	ended     time.Time // since when it does not run

	out     bool      // by hand: what it has is moved to others
	emptied time.Time // when that is done
}

// CreateOSD makes an OSD on a disk of a host, unless the disk has one, and returns the OSD's number: the lowest free one. A disk is any
// value that is the same as long as the disk exists.
func (c *Cluster) CreateOSD(host string, disk any) int {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	for id, o := range c.osds {
		if o.disk == disk {
			return id
		}
	}
	id := 0
	for _, taken := c.osds[id]; taken; _, taken = c.osds[id] {
		id++
	}
	c.osds[id] = osd{host: host, disk: disk, ended: time.Now()}
	return id
}

// StartOSD runs an OSD that was made on the disk.
func (c *Cluster) StartOSD(id int, disk any) (stop func(), err error) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	if o, made := c.osds[id]; !made || o.disk != disk {
		return nil, fmt.Errorf("no disk found with OSD ID %d", id) // as Rook's script, which looks through all disks
	}
	c.start(id)
	c.judge()
	return c.stop(func() {
		if c.osds[id].disk == disk { // it was not purged meanwhile
			c.end(id)
		}
	}), nil
}

// Errors of commands about an OSD.
var (
	ErrNoOSD   = errors.New("Error ENOENT: osd does not exist")
	ErrOSDUp   = errors.New("Error EBUSY: osd is not `down`.")
	ErrOSDUsed = errors.New("Error EBUSY: OSD(s) have pgs currently mapped to them.")
)

// Out moves what an OSD has to others: `ceph osd out`.
func (c *Cluster) Out(id int) error {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	o, made := c.osds[id]
	if !made {
		return ErrNoOSD
	}
	if !o.out {
		o.out, o.emptied = true, time.Now().Add(c.world.Recovery)
		c.osds[id] = o
		time.AfterFunc(c.world.Recovery, func() { c.stop(func() {})() })
	}
	c.judge()
	return nil
}

// SafeToDestroy tells whether nothing would be lost with an OSD: `ceph osd safe-to-destroy`.
func (c *Cluster) SafeToDestroy(id int) error {
	clean := c.Clean()
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	switch o, made := c.osds[id]; {
	case !made:
		return ErrNoOSD
	case !clean || o.up && !o.out:
		return ErrOSDUsed
	}
	return nil
}

// Up tells whether an OSD runs.
func (c *Cluster) Up(id int) bool {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	return c.osds[id].up
}

// Purge forgets an OSD that does not run: `ceph osd purge --force`.
func (c *Cluster) Purge(id int) error {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	switch o, made := c.osds[id]; {
	case !made:
		return ErrNoOSD
	case o.up:
		return ErrOSDUp
	}
	delete(c.osds, id)
	c.judge()
	return nil
}
