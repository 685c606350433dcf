package proxmox

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Storage is a datastore of the cluster.
type Storage struct {
	Name    string
	Type    string   // dir, nfs, lvm, lvmthin, zfspool or rbd; the first two hold files, the others block devices
	Content []string // content types: images, rootdir, iso, vztmpl, snippets, backup, import
	Shared  bool     // all nodes have the same content; otherwise each node has its own
	Nodes   []string // nodes that have it; nil means all
	Total   int64    // bytes; 0 means 100 GiB. Thin types may be overcommitted, as real ones may
}

// DefaultStorages are those of a new Proxmox VE installation: ISO images on local, disks on local-lvm.
func DefaultStorages() []Storage {
	return []Storage{
		{Name: "local", Type: "dir", Content: []string{"iso", "vztmpl", "snippets"}, Total: 100 << 30},
		{Name: "local-lvm", Type: "lvmthin", Content: []string{"images", "rootdir"}, Total: 800 << 30},
	}
}

func (s *Storage) files() bool { return s.Type == "dir" || s.Type == "nfs" }
func (s *Storage) thin() bool {
	return s.Type == "lvmthin" || s.Type == "rbd" || s.Type == "zfspool"
}
func (s *Storage) allows(content string) bool { return slices.Contains(s.Content, content) }
func (s *Storage) on(node string) bool        { return s.Nodes == nil || slices.Contains(s.Nodes, node) }

// formats are the disk formats that the storage supports; the first is its default.
func (s *Storage) formats() []string {
	if s.files() {
		return []string{"raw", "qcow2", "vmdk"}
	}
	return []string{"raw"}
}

// storage finds a storage by name.
func (c *Cluster) storage(name string) (*Storage, error) {
	i := slices.IndexFunc(c.cfg.Storages, func(s Storage) bool { return s.Name == name })
	if i < 0 {
		return nil, internalError("storage '%s' does not exist", name)
	}
	return &c.cfg.Storages[i], nil
}

// storageOn finds a storage that exists on a node.
func (c *Cluster) storageOn(name, node string) (*Storage, error) {
	s, err := c.storage(name)
	if err != nil {
		return nil, err
	}
	if !s.on(node) {
		return nil, internalError("storage '%s' is not available on node '%s'", name, node)
	}
	return s, nil
}

// used is the used space of a storage on a node, in bytes. The caller holds the mutex.
func (c *Cluster) used(s *Storage, node string) int64 {
	var sum int64
	for key, v := range c.volumes {
		if v.storage == s.Name && key.location == location(s, node) {
			sum += v.size
		}
	}
	return sum
}

func (c *Cluster) describeStorage(s *Storage, node string) map[string]any {
	used := min(c.used(s, node), s.Total)
	if c.full(s) {
		used = s.Total
	}
	return map[string]any{
		"storage": s.Name, "type": s.Type, "content": strings.Join(s.Content, ","), "active": 1, "enabled": 1,
		"shared": bit(s.Shared), "total": s.Total, "used": used, "avail": s.Total - used,
	}
}

// describeElsewhere describes a storage that a node does not have.
func describeElsewhere(s *Storage) map[string]any {
	return map[string]any{
		"storage": s.Name, "type": s.Type, "content": strings.Join(s.Content, ","), "active": 0, "enabled": 0,
		"shared": bit(s.Shared), "total": 0, "used": 0, "avail": 0,
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// getStorages lists the storages of a node; without a content type, also those of other nodes, which are not enabled on this one.
func getStorages(q *request) (any, error) {
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	out := []any{}
	if !q.token.has("Datastore.Audit") && !q.token.has("Datastore.AllocateSpace") {
		return out, nil
	}
	for i := range q.c.cfg.Storages {
		s := &q.c.cfg.Storages[i]
		want := split(q.form.Get("content"))
		if len(want) > 0 && !slices.ContainsFunc(want, s.allows) {
			continue
		}
		switch {
		case s.on(q.node.Name):
			out = append(out, q.c.describeStorage(s, q.node.Name))
		case len(want) == 0:
			out = append(out, describeElsewhere(s))
		}
	}
	return out, nil
}

// visibleStorage finds the storage of a request and checks that the token may read it.
func (q *request) visibleStorage() (*Storage, error) {
	s, err := q.c.storageOn(q.r.PathValue("storage"), q.node.Name)
	if err != nil {
		return nil, err
	}
	if !q.token.has("Datastore.Audit") && !q.token.has("Datastore.AllocateSpace") {
		return nil, forbidden("/storage/"+s.Name, "Datastore.Audit", "Datastore.AllocateSpace")
	}
	return s, nil
}

func getStorageStatus(q *request) (any, error) {
	s, err := q.visibleStorage()
	if err != nil {
		return nil, err
	}
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	return q.c.describeStorage(s, q.node.Name), nil
}

func getStorageContent(q *request) (any, error) {
	s, err := q.visibleStorage()
	if err != nil {
		return nil, err
	}
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	var list []*volume
	for key, v := range q.c.volumes {
		if v.storage != s.Name || key.location != location(s, q.node.Name) {
			continue
		}
		if want := q.form.Get("content"); want != "" && want != v.content {
			continue
		}
		if want := number(q.form, "vmid", 0); want != 0 && want != v.owner {
			continue
		}
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b *volume) int { return strings.Compare(a.id, b.id) })
	out := []any{}
	for _, v := range list {
		entry := map[string]any{"volid": v.id, "content": v.content, "format": v.format, "size": v.size, "ctime": v.created.Unix()}
		if v.owner != 0 {
			entry["vmid"] = v.owner
		}
		out = append(out, entry)
	}
	return out, nil
}

// storageAndVolume returns the storage of a request, and the id of the volume in the request, which may lack its storage.
func (q *request) storageAndVolume() (*Storage, string, error) {
	s, err := q.c.storageOn(q.r.PathValue("storage"), q.node.Name)
	if err != nil {
		return nil, "", err
	}
	name := q.r.PathValue("volume")
	storage, _, ok := strings.Cut(name, ":")
	if !ok {
		return s, s.Name + ":" + name, nil
	}
	if storage != s.Name {
		return nil, "", invalid(map[string]string{"volume": "storage ID missmatch (" + storage + " != " + s.Name + ")"})
	}
	return s, name, nil
}

func getVolume(q *request) (any, error) {
	s, id, err := q.storageAndVolume()
	if err != nil {
		return nil, err
	}
	if err := q.token.requireVolume(id, 0); err != nil {
		return nil, err
	}
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	v := q.c.volume(q.node.Name, id)
	if v == nil {
		return nil, internalError("volume_size_info on '%s' failed", id)
	}
	return map[string]any{"path": v.path(s), "format": v.format, "size": v.size, "used": v.size}, nil
}

// diskFile is the name of a file with a disk.
var diskFile = regexp.MustCompile(`^(.+)\.(raw|qcow2|vmdk)$`)

// createVolume creates a disk of a VM that need not exist.
func createVolume(q *request) (any, error) {
	s, err := q.c.storageOn(q.r.PathValue("storage"), q.node.Name)
	if err != nil {
		return nil, err
	}
	if err := q.token.require("/storage/"+s.Name, "Datastore.AllocateSpace"); err != nil {
		return nil, err
	}
	id, err := parseID(q.form.Get("vmid"))
	if err != nil {
		return nil, err
	}
	asked := q.form.Get("size")
	if strings.TrimRight(asked, "MG") == asked {
		asked += "K"
	}
	size, err := parseSize(asked)
	if err != nil {
		return nil, invalid(map[string]string{"size": "value does not match the regex pattern"})
	}
	name, format := q.form.Get("filename"), s.formats()[0]
	suffix, own := strings.CutPrefix(name, fmt.Sprintf("vm-%d-", id))
	if !own {
		return nil, internalError("illegal name '%s' - should be 'vm-%d-*'", name, id)
	}
	if file := diskFile.FindStringSubmatch(suffix); file != nil && s.files() {
		suffix, format = file[1], file[2]
	} else if s.files() {
		return nil, internalError("unable to parse volume filename '%s'", name)
	}
	if err := q.c.awaitAllocation(q.r.Context(), s, q.node.Name); err != nil {
		return nil, err
	}
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	v := newVolume(diskName(s, id, suffix, format), id, format, size)
	return v.id, q.c.put(s, q.node.Name, v)
}

func deleteVolume(q *request) (any, error) {
	s, id, err := q.storageAndVolume()
	if err != nil {
		return nil, err
	}
	if err := q.token.require("/storage/"+s.Name, "Datastore.Allocate"); err != nil {
		return nil, err
	}
	return q.c.fork(job{
		node: q.node, kind: "imgdel", id: q.c.deletionOf(q.node.Name, s, id), token: q.token, duration: q.c.cfg.Latency.Task,
		work: q.c.removeVolume(q.node.Name, id),
	})
}

// deletionOf is the id of the task that deletes a volume: the storage, with the volume's VM if any.
func (c *Cluster) deletionOf(node string, s *Storage, id string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.volume(node, id); v != nil && v.owner != 0 {
		return strconv.Itoa(v.owner) + "@" + s.Name
	}
	return s.Name
}

// storageResource is a storage of a node in the list of cluster resources. The caller holds the mutex.
func (c *Cluster) storageResource(s *Storage, node string) map[string]any {
	return map[string]any{
		"id": "storage/" + node + "/" + s.Name, "type": "storage", "storage": s.Name, "node": node, "plugintype": s.Type, "status": "available",
		"shared": bit(s.Shared), "content": strings.Join(s.Content, ","), "maxdisk": s.Total, "disk": min(c.used(s, node), s.Total),
	}
}

// getResources lists the VMs and the storages of the cluster. Its other resources are not modelled.
func getResources(q *request) (any, error) {
	kind := q.form.Get("type")
	if kind != "" && kind != "vm" && kind != "storage" {
		return nil, internalError("resources of the type %s are not modelled by this simulation", kind)
	}
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	out := []any{}
	if kind != "vm" && q.token.has("Datastore.Audit") {
		for _, n := range q.c.nodes() {
			for i := range q.c.cfg.Storages {
				if s := &q.c.cfg.Storages[i]; s.on(n.Name) {
					out = append(out, q.c.reported(q.c.storageResource(s, n.Name), "maxdisk", "disk"))
				}
			}
		}
	}
	if kind != "storage" && q.token.has("VM.Audit") {
		for _, m := range q.c.sortedMachines() {
			out = append(out, q.c.reported(m.resource(), "name", "maxcpu", "maxmem", "maxdisk", "uptime", "template"))
		}
	}
	return out, nil
}
