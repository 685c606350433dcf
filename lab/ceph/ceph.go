// Package ceph simulates Ceph clusters as their clients see them: monitors that answer while they have a quorum, users with keys and
// capabilities, pools that need OSDs, and RBD images with their bytes. Package rook runs the daemons of a cluster when their pods run, and
// package csi is a client.
//
// A client finds a cluster by the address of a monitor, from whichever Kubernetes cluster. Not modelled: the protocol on the wire, routes
// between client and monitor, placement groups (all of a pool are in one state; recovery takes the same time whatever was written; ten
// minutes after an OSD has ended, the others have its copies at once, however few they are; more copies of a pool are there at once), the
// seconds until Ceph notices that a daemon is gone, what a purged OSD leaves on its disk, capacity (every pool is large enough), the size
// of an image's file system, reads and writes that wait for a pool, snapshots, clones, mirroring, encryption, CephFS and object stores; of
// the types of keys, restarts of daemons with new keys, tickets, and the warning that goes by itself after some hours.
package ceph

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// MonitorPort is where monitors listen, with the second version of Ceph's protocol.
const MonitorPort = 3300

// pollInterval is how often a client asks for a monitor that does not answer, or a pool that is not active.
const pollInterval = 100 * time.Millisecond

// World has the Ceph clusters of a lab.
type World struct {
	Dir string // the files of the images; it need not exist

	// How long an OSD that was down needs for the copies that it missed. 0: none, as if nothing was written meanwhile.
	Recovery time.Duration
	Log      *slog.Logger // says when images stall; nil: nobody records it

	mu       sync.Mutex
	clusters map[string]*Cluster // by fsid
}

// Cluster is one Ceph cluster.
type Cluster struct {
	FSID string

	world    *World // whose lock guards the following
	members  []string
	monitors map[string]string // addresses of the running monitors, by name
	managers map[string]bool   // the running ones
	osds     map[int]osd
	users    map[string]User
	pools    map[string]*Pool
	lastPool int
	copies   int       // of a pool that says none: osd_pool_default_size
	noout    string    // the host whose OSDs are never marked out
	stalled  time.Time // since when a pool with images does not answer; zero if all do

	version       Version
	daemonKeys    KeyType
	keyGeneration int64           // of the daemons' keys
	muted         map[string]bool // checks that are hidden, by code
}

// User is a Ceph user, such as client.admin.
type User struct {
	Key  string
	Type KeyType
	Caps map[string]string // by kind of daemon: mon, mgr, osd
}

// Pool is a pool of RBD images.
type Pool struct {
	ID     int
	Name   string
	Size   int // copies, each on another host
	images map[string]*Image
	names  map[string]string // the images' names by the namespaces and names under which they were asked for

	namespaces map[string]bool // RADOS namespaces, beside the one without a name
}

// Image is an RBD image.
type Image struct {
	Name     string
	Bytes    int64
	dir      string          // the files of its file system
	watchers map[string]bool // the clients that have mapped it

	namespace string
}

// Errors of a cluster, in the words of librados and librbd.
var (
	ErrDenied   = errors.New("rados: ret=-13, Permission denied")
	ErrCaps     = errors.New("rados: ret=-1, Operation not permitted")
	ErrNoPool   = errors.New("pool not found")
	ErrNoImage  = errors.New("image not found")
	ErrNoSpace  = errors.New("rbd: ret=-2, No such file or directory") // there is no such RADOS namespace
	ErrWatched  = errors.New("image has watchers")
	ErrDiffers  = errors.New("image exists with another size")
	errNoAnswer = errors.New("no monitor answers")
)

// Admin is the user that may do everything.
const Admin = "client.admin"

// Create makes a cluster of a release with the user client.admin. It has no daemons yet.
func (w *World) Create(v Version) *Cluster {
	c := &Cluster{FSID: uuid(), world: w, monitors: map[string]string{}, managers: map[string]bool{}, osds: map[int]osd{},
		users: map[string]User{}, pools: map[string]*Pool{}, copies: 3,
		version: v, daemonKeys: v.usual(), keyGeneration: 1, muted: map[string]bool{}}
	c.users[Admin] = User{newKey(v.usual()), v.usual(), map[string]string{"mon": "allow *", "mgr": "allow *", "osd": "allow *"}}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.clusters == nil {
		w.clusters = map[string]*Cluster{}
	}
	w.clusters[c.FSID] = c
	return c
}

// Find returns the cluster with that id; nil if there is none.
func (w *World) Find(fsid string) *Cluster {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clusters[fsid]
}

// SetMembers sets the names of the monitors that belong to the cluster, running or not.
func (c *Cluster) SetMembers(names []string) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.members = slices.Clone(names)
	c.judge()
}

// StartMonitor runs a monitor at an address, IP:PORT. The returned function ends it.
func (c *Cluster) StartMonitor(name, address string) (stop func()) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.monitors[name] = address
	c.judge()
	return c.stop(func() {
		if c.monitors[name] == address {
			delete(c.monitors, name)
		}
	})
}

// StartManager runs a manager.
func (c *Cluster) StartManager(name string) (stop func()) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.managers[name] = true
	c.judge()
	return c.stop(func() { delete(c.managers, name) })
}

// stop returns a function that changes the cluster once.
func (c *Cluster) stop(change func()) func() {
	return sync.OnceFunc(func() {
		c.world.mu.Lock()
		defer c.world.mu.Unlock()
		change()
		c.judge()
	})
}

// Quorum returns the names of the monitors in the quorum, sorted; nil if there is none.
func (c *Cluster) Quorum() []string {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	return c.quorum()
}

func (c *Cluster) quorum() []string {
	var names []string
	for _, name := range c.members {
		if c.monitors[name] != "" {
			names = append(names, name)
		}
	}
	if 2*len(names) <= len(c.members) {
		return nil
	}
	slices.Sort(names)
	return names
}

// Monitors returns the addresses of the monitors in the quorum, by name.
func (c *Cluster) Monitors() map[string]string {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	addresses := map[string]string{}
	for _, name := range c.quorum() {
		addresses[name] = c.monitors[name]
	}
	return addresses
}

// Health returns the cluster's health, and its checks' messages by their code, as `ceph status` does.
func (c *Cluster) Health() (string, map[string]string) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	checks := map[string]string{}
	down, moves := 0, false
	for _, o := range c.osds {
		if c.awaits(o) {
			down++
		}
		moves = moves || !o.up && o.moves()
	}
	if down > 0 {
		checks["OSD_DOWN"] = fmt.Sprintf("%d osds down", down)
	}
	if quorum := c.quorum(); len(quorum) < len(c.members) {
		checks["MON_DOWN"] = fmt.Sprintf("%d/%d mons down, quorum %s", len(c.members)-len(quorum), len(c.members), strings.Join(quorum, ","))
	}
	if len(c.managers) == 0 {
		checks["MGR_DOWN"] = "no active mgr"
	}
	if len(c.osds) < c.copies {
		checks["TOO_FEW_OSDS"] = fmt.Sprintf("OSD count %d < osd_pool_default_size %d", len(c.osds), c.copies)
	}
	for _, name := range slices.Sorted(maps.Keys(c.pools)) {
		size := c.pools[name].Size
		switch up, whole := c.hosts(); {
		case up < minimum(size) || whole == 0:
			checks["PG_AVAILABILITY"] = "Reduced data availability: 32 pgs inactive"
		case up < size || down > 0:
			checks["PG_DEGRADED"] = "Degraded data redundancy: 32 pgs undersized"
		case whole < up || moves:
			checks["PG_DEGRADED"] = "Degraded data redundancy: 32 pgs degraded"
		}
	}
	maps.Copy(checks, c.keyChecks())
	maps.DeleteFunc(checks, func(code, _ string) bool { return c.muted[code] })
	switch _, insecure := checks[serviceKeys]; {
	case insecure:
		return Severity(serviceKeys), checks
	case len(checks) > 0:
		return "HEALTH_WARN", checks
	}
	return "HEALTH_OK", checks
}

// SetUser makes a user with a key of a type, or changes the capabilities of the one that exists, whose key stays. It returns the key.
func (c *Cluster) SetUser(name string, caps map[string]string, of KeyType) string {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	user, exists := c.users[name]
	if !exists {
		user.Type = cmp.Or(of, c.version.usual())
		user.Key = newKey(user.Type)
	}
	user.Caps = maps.Clone(caps)
	c.users[name] = user
	return user.Key
}

// RemoveUser removes a user, whose key is not valid any more.
func (c *Cluster) RemoveUser(name string) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	delete(c.users, name)
}

// SetPool makes a pool, or changes its number of copies.
func (c *Cluster) SetPool(name string, size int) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.setPool(name, size)
	c.judge()
}

func (c *Cluster) setPool(name string, size int) {
	pool := c.pools[name]
	if pool == nil {
		c.lastPool++
		pool = &Pool{ID: c.lastPool, Name: name, images: map[string]*Image{}, names: map[string]string{}, namespaces: map[string]bool{}}
		c.pools[name] = pool
	}
	pool.Size = size
}

// SetDefaultCopies sets how many copies a pool has that says none: osd_pool_default_size. Ceph's own number is 3.
func (c *Cluster) SetDefaultCopies(copies int) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.copies = copies
	c.judge()
}

// managerPool is the pool of the managers.
const managerPool = ".mgr"

// manage makes the managers' pool as a manager does: once there are as many OSDs as the pool has copies, on however few hosts.
func (c *Cluster) manage() {
	ready := 0
	for _, o := range c.osds {
		if o.up && !o.out {
			ready++
		}
	}
	if c.pools[managerPool] == nil && len(c.managers) > 0 && c.quorum() != nil && ready >= c.copies {
		c.setPool(managerPool, c.copies)
	}
}

// RemovePool removes a pool. It returns the number of the pool's images, and removes only an empty pool.
func (c *Cluster) RemovePool(name string) int {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	pool := c.pools[name]
	if pool == nil {
		return 0
	}
	if len(pool.images) == 0 {
		delete(c.pools, name)
	}
	return len(pool.images)
}

// AddNamespace makes a RADOS namespace in a pool. It reports whether the pool is there.
func (c *Cluster) AddNamespace(pool, name string) bool {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	p := c.pools[pool]
	if p != nil {
		p.namespaces[name] = true
	}
	return p != nil
}

// RemoveNamespace removes a RADOS namespace of a pool. It returns the number of the namespace's images, and removes only an empty one.
func (c *Cluster) RemoveNamespace(pool, name string) (images int) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	p := c.pools[pool]
	if p == nil {
		return 0
	}
	for _, image := range p.images {
		if image.namespace == name {
			images++
		}
	}
	if images == 0 {
		delete(p.namespaces, name)
	}
	return images
}

// Images is the number of images in all pools.
func (c *Cluster) Images() int {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	return c.images()
}

func (c *Cluster) images() int {
	sum := 0
	for _, pool := range c.pools {
		sum += len(pool.images)
	}
	return sum
}

// uuid returns a random UUID of version 4.
func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
