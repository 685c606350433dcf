package proxmox

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/lab/vm"
)

const (
	cloudInitSize = 4 << 20
	efiSize       = 4 << 20   // size of an efidisk with efitype=4m on block storage
	efiFileSize   = 528 << 10 // size of the same as a file
)

// volumeKey identifies a volume. Local storages of two nodes can have volumes of the same name.
type volumeKey struct {
	location string // node name; empty on a shared storage
	id       string // STORAGE:NAME
}

// volume is a disk or file on a storage.
type volume struct {
	id      string
	storage string
	content string // content type
	format  string
	size    int64
	owner   int // VM id; 0 for files
	created time.Time
	data    []byte   // of a downloaded file
	disk    *vm.Disk // of a disk; the same object while the volume exists
}

// location is the node whose own content a storage has, or empty for a shared storage.
func location(s *Storage, node string) string {
	if s.Shared {
		return ""
	}
	return node
}

// volume finds a volume of a node. The caller holds the mutex.
func (c *Cluster) volume(node, id string) *volume {
	name, _, _ := strings.Cut(id, ":")
	s, err := c.storage(name)
	if err != nil {
		return nil
	}
	return c.volumes[volumeKey{location(s, node), id}]
}

// path is the volume's path on the host.
func (v *volume) path(s *Storage) string {
	_, name, _ := strings.Cut(v.id, ":")
	switch {
	case v.content == "iso":
		return isoDir(s) + strings.TrimPrefix(name, "iso/")
	case s.files():
		return "/var/lib/" + s.Name + "/images/" + name
	}
	return "/dev/pve/" + name
}

func isoDir(s *Storage) string {
	if s.Name == "local" {
		return "/var/lib/vz/template/iso/"
	}
	return "/mnt/pve/" + s.Name + "/template/iso/"
}

// put stores a volume, or refuses if the storage is full. The caller holds the mutex.
func (c *Cluster) put(s *Storage, node string, v *volume) error {
	key := volumeKey{location(s, node), v.id}
	if c.volumes[key] != nil {
		return fmt.Errorf("volume '%s' already exists", v.id)
	}
	free := s.Total - c.used(s, node)
	if c.full(s) || v.size > free && !s.thin() {
		return errNoSpace(s, v, max(0, free))
	}
	v.storage, v.created = s.Name, time.Now()
	c.volumes[key] = v
	return nil
}

// allocate creates a disk for a VM: vm-ID-disk-N with the first N that no disk has, of whatever format. The caller holds the mutex.
func (c *Cluster) allocate(s *Storage, node string, owner int, format string, size int64) (*volume, error) {
	if format == "" {
		format = s.formats()[0]
	}
	if !slices.Contains(s.formats(), format) {
		return nil, fmt.Errorf("unsupported format '%s' at /usr/share/perl5/PVE/Storage/%s.pm", format, plugin(s.Type))
	}
	for n := 0; ; n++ {
		name := fmt.Sprintf("disk-%d", n)
		if slices.ContainsFunc(s.formats(), func(format string) bool {
			return c.volumes[volumeKey{location(s, node), diskName(s, owner, name, format)}] != nil
		}) {
			continue
		}
		v := newVolume(diskName(s, owner, name, format), owner, format, size)
		return v, c.put(s, node, v)
	}
}

func newVolume(id string, owner int, format string, size int64) *volume {
	return &volume{id: id, content: "images", format: format, size: size, owner: owner, disk: &vm.Disk{Volume: id, Size: size}}
}

// allocateCloudInit creates the cloud-init drive of a VM. The caller holds the mutex.
func (c *Cluster) allocateCloudInit(s *Storage, node string, owner int, format string) (*volume, error) {
	v := &volume{id: diskName(s, owner, "cloudinit", format), content: "images", format: format, size: cloudInitSize, owner: owner}
	return v, c.put(s, node, v)
}

// diskName is the volume id of a VM's disk.
func diskName(s *Storage, owner int, suffix, format string) string {
	if s.files() {
		return fmt.Sprintf("%s:%d/vm-%d-%s.%s", s.Name, owner, owner, suffix, format)
	}
	return fmt.Sprintf("%s:vm-%d-%s", s.Name, owner, suffix)
}

func plugin(storageType string) string {
	names := map[string]string{"lvm": "LVMPlugin", "lvmthin": "LvmThinPlugin", "zfspool": "ZFSPoolPlugin", "rbd": "RBDPlugin"}
	if n, ok := names[storageType]; ok {
		return n
	}
	return "Plugin"
}

// free removes a volume. The caller holds the mutex.
func (c *Cluster) free(node, id string) {
	name, _, _ := strings.Cut(id, ":")
	if s, err := c.storage(name); err == nil {
		c.remove(volumeKey{location(s, node), id})
	}
}

// remove removes a volume, with what a guest wrote on it. The caller holds the mutex.
func (c *Cluster) remove(key volumeKey) {
	v := c.volumes[key]
	if v == nil {
		return
	}
	delete(c.volumes, key)
	if v.disk == nil {
		return
	}
	if content, is := v.disk.Content.(io.Closer); is {
		if err := content.Close(); err != nil {
			c.log.Warn("volume removed", "volume", v.id, "err", err)
		}
	}
}

// freeOwned removes a volume if a VM owns it. The caller holds the mutex.
func (c *Cluster) freeOwned(m *machine, id string) {
	if v := c.volume(m.node, id); v != nil && v.owner == m.id {
		c.free(m.node, id)
	}
}

// freeAll removes every volume that a VM owns. The caller holds the mutex.
func (c *Cluster) freeAll(owner int) {
	for key, v := range c.volumes {
		if v.owner == owner {
			c.remove(key)
		}
	}
}

// removeVolume deletes a volume for a user. A block device of a running VM is in use and stays. A file goes, also while it is open (unlink
// in free_image of pve-storage's Plugin.pm).
func (c *Cluster) removeVolume(node, id string) func(context.Context, *task) error {
	return func(context.Context, *task) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		v := c.volume(node, id)
		if v == nil {
			return fmt.Errorf("volume '%s' does not exist", id)
		}
		for _, m := range c.machines {
			if m.guest != nil && !c.isFile(id) && c.uses(m, v) {
				_, name, _ := strings.Cut(id, ":")
				return fmt.Errorf("lvremove 'pve/%s' error:   Logical volume pve/%s in use.", name, name)
			}
		}
		c.free(node, id)
		return nil
	}
}

// isFile tells whether a volume is a file of its storage.
func (c *Cluster) isFile(id string) bool {
	name, _, _ := strings.Cut(id, ":")
	s, err := c.storage(name)
	return err == nil && s.files()
}

// uses tells whether a volume is a drive of a VM. The caller holds the mutex.
func (c *Cluster) uses(m *machine, v *volume) bool {
	for key, value := range m.config {
		if isDrive(key) && c.volume(m.node, volumeOf(value)) == v {
			return true
		}
	}
	return false
}

// Volumes lists every volume in the cluster as NODE/STORAGE:NAME, without the node on a shared storage, sorted.
func (c *Cluster) Volumes() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for key := range c.volumes {
		all = append(all, strings.TrimPrefix(key.location+"/"+key.id, "/"))
	}
	slices.Sort(all)
	return all
}
