package ceph

import "time"

// downOut is after how long Ceph marks an OSD out that is down: mon_osd_down_out_interval.
const downOut = 10 * time.Minute

// awaits tells whether Ceph waits for an OSD to come back. Until then, its copies are nowhere else.
func (c *Cluster) awaits(o osd) bool {
	return !o.up && !o.out && (time.Since(o.ended) < downOut || o.host == c.noout)
}

// SetNoout names the host whose OSDs are never marked out; "" is none.
func (c *Cluster) SetNoout(host string) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.noout = host
}

// moves tells whether others do not have yet what an OSD had that is out.
func (o osd) moves() bool { return o.out && time.Now().Before(o.emptied) }

// Clean tells whether all copies of everything are there, and where they belong.
func (c *Cluster) Clean() bool {
	_, checks := c.Health()
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	for _, o := range c.osds {
		if o.moves() {
			return false
		}
	}
	return checks["PG_AVAILABILITY"] == "" && checks["PG_DEGRADED"] == ""
}

// start runs an OSD. From then on, those that miss copies get them from it, or it gets them from others. A new one misses all.
func (c *Cluster) start(id int) {
	o := c.osds[id]
	if !o.ran {
		_, whole := c.hosts()
		o.misses = whole > 0 && c.images() > 0
	}
	o.up, o.ran = true, true
	c.osds[id] = o
	for other, o := range c.osds {
		if o.up && o.misses {
			o.recovered = time.Now().Add(c.world.Recovery)
			c.osds[other] = o
		}
	}
	time.AfterFunc(c.world.Recovery, func() {
		c.world.mu.Lock()
		defer c.world.mu.Unlock()
		c.recover()
		c.judge()
	})
	c.recover()
}

// recover ends the recovery of the OSDs that have had their time.
func (c *Cluster) recover() {
	if _, whole := c.hosts(); whole == 0 {
		return // nobody has what they miss
	}
	for id, o := range c.osds {
		o.misses = o.misses && (!o.up || time.Now().Before(o.recovered))
		c.osds[id] = o
	}
}

// end ends an OSD. It misses what is written from now on: nothing, if nobody is left who has all.
func (c *Cluster) end(id int) {
	o := c.osds[id]
	o.up = false
	c.osds[id] = o
	_, whole := c.hosts()
	o.misses, o.ended = o.misses || whole > 0, time.Now()
	if o.moves() { // others have it to make anew, and not only to fetch
		o.emptied = o.ended.Add(c.world.Recovery)
	}
	c.osds[id] = o
}

// hosts counts the hosts with a running OSD, and those of them whose running OSDs miss nothing. An OSD that is out counts until others have
// its copies.
func (c *Cluster) hosts() (up, whole int) {
	hosts := map[string]bool{}
	for _, o := range c.osds {
		if o.up && (!o.out || o.moves()) {
			hosts[o.host] = hosts[o.host] || o.misses
		}
	}
	for _, misses := range hosts {
		if !misses {
			whole++
		}
	}
	return len(hosts), whole
}

// minimum is the number of copies without which a pool does not answer: Ceph's min_size for its size.
func minimum(size int) int { return size - size/2 }

// answers tells whether a pool's images can be read and written: enough hosts have their OSDs, and one of these has all that was written.
func (c *Cluster) answers(p *Pool) bool {
	up, whole := c.hosts()
	return c.quorum() != nil && up >= minimum(p.Size) && whole > 0
}

// judge follows every change. It records in the lab's log when images stall, and for how long.
func (c *Cluster) judge() {
	c.manage()
	stalled := false
	for _, pool := range c.pools {
		stalled = stalled || len(pool.images) > 0 && !c.answers(pool)
	}
	switch {
	case stalled == !c.stalled.IsZero() || c.world.Log == nil:
	case stalled:
		c.stalled = time.Now()
		c.world.Log.Warn("Ceph's volumes stall", "fsid", c.FSID)
	default:
		c.world.Log.Info("Ceph's volumes answer again", "fsid", c.FSID, "after", time.Since(c.stalled))
		c.stalled = time.Time{}
	}
}
