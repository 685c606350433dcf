package proxmox

import (
	"context"
	"strings"
	"time"
)

// awaitAllocations takes the time in which the new volumes of a VM are allocated: one after the other, each with the lock of its storage.
// As by cluster_lock_storage of pve-storage, a shared storage has one lock for all nodes, and who waits for a lock for too long fails. The
// first who asks is the first. Volumes that are freed or resized take no lock here.
func (c *Cluster) awaitAllocations(ctx context.Context, node string, set map[string]string) error {
	for _, key := range driveOrder {
		volume := parseProperty(set[key], "file").main
		name, suffix, _ := strings.Cut(volume, ":")
		if !newDisk.MatchString(volume) && suffix != "cloudinit" {
			continue
		}
		s, err := c.storageOn(name, node)
		if err != nil {
			return err
		}
		if err := c.awaitAllocation(ctx, s, node); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) awaitAllocation(ctx context.Context, s *Storage, node string) error {
	lock := c.storageLock(s, node)
	patience := time.NewTimer(lockTimeout)
	defer patience.Stop()
	select {
	case lock <- struct{}{}:
		defer func() { <-lock }()
	case <-ctx.Done():
		return errInterrupted
	case <-patience.C:
		if s.Shared {
			return internalError("cfs-lock 'storage-%s' error: got lock request timeout", s.Name)
		}
		return internalError("can't lock file '/var/lock/pve-manager/pve-storage-%s' - got timeout", s.Name)
	}
	select {
	case <-ctx.Done():
		return errInterrupted
	case <-time.After(c.allocationTime(s)):
		return nil
	}
}

// storageLock returns the lock of a storage on a node.
func (c *Cluster) storageLock(s *Storage, node string) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := volumeKey{location(s, node), s.Name}
	if c.locks[key] == nil {
		c.locks[key] = make(chan struct{}, 1)
	}
	return c.locks[key]
}
