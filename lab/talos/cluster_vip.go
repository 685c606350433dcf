package talos

import (
	"net/netip"
	"slices"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
)

// electVIP gives the virtual IP to a control plane whose etcd works and whose configuration names the VIP, and removes it from any other.
// The claim is a lease in etcd: without quorum no node holds it. A holder that stops its pods, or whose configuration does not name the VIP
// any more, resigns, and another control plane has it at once; otherwise after the holder's lease has expired.
func (c *cluster) electVIP(up []*boot, quorum bool) {
	if !c.vip.IsValid() {
		return
	}
	s := c.site
	var candidates []*boot
	s.mu.Lock()
	for _, b := range up {
		if b.stage != StageStopping && b.config != nil && b.namesVIP(c.vip) && !b.inst.etcd.learner && len(b.addresses) > 0 {
			candidates = append(candidates, b)
		}
	}
	byAddress(candidates)
	// A holder without addresses has lost its power, although its etcd may still end.
	resigns := c.holder != nil && (c.holder.resigned || slices.Contains(up, c.holder) && len(c.holder.addresses) > 0)
	s.mu.Unlock()

	if c.holder != nil {
		for _, b := range candidates {
			if b == c.holder && quorum {
				return
			}
		}
		c.releaseVIP(resigns)
		if quorum && resigns {
			c.vipReleased = time.Time{}
		}
	}
	if !quorum || len(candidates) == 0 {
		return
	}
	if !c.vipReleased.IsZero() {
		if left := s.cfg.Latency.VIPFailover - time.Since(c.vipReleased); left > 0 {
			time.AfterFunc(left, s.change.Notify)
			return
		}
	}
	prefix := netip.PrefixFrom(c.vip, c.vip.BitLen())
	if err := s.cfg.Addresses.Add(prefix); err != nil {
		s.cfg.Log.Error("virtual IP not added", "cluster", c.name, "address", prefix, "error", err)
		time.AfterFunc(s.cfg.Latency.VIPFailover, s.change.Notify)
		return
	}
	c.holder = candidates[0]
	c.setVIP(c.holder, prefix)
	c.holder.Printk("[talos] enabled shared IP {\"component\": \"controller-runtime\", \"link\": %q, \"ip\": %q}", linkName, c.vip)
	c.holder.publishAddresses()
}

// releaseVIP removes the virtual IP from its holder. The API that answers on it ends before, unless the holder is lost and says nothing
// more.
func (c *cluster) releaseVIP(resigns bool) {
	s := c.site
	prefix := netip.PrefixFrom(c.vip, c.vip.BitLen())
	remove := func() {
		if err := s.cfg.Addresses.Remove(prefix); err != nil {
			s.cfg.Log.Error("virtual IP not removed", "cluster", c.name, "address", prefix, "error", err)
		}
	}
	if !resigns {
		remove()
	}
	if served := c.serving[c.vip]; served.stop != nil {
		served.stop()
		delete(c.serving, c.vip)
	}
	if resigns {
		remove()
	}
	c.setVIP(c.holder, netip.Prefix{})
	c.holder.Printk("[talos] removed shared IP {\"component\": \"controller-runtime\", \"link\": %q, \"ip\": %q}", linkName, c.vip)
	c.holder.publishAddresses()
	c.holder, c.vipReleased = nil, time.Now()
}

// setVIP gives a node the virtual IP, or takes it, and tells the other nodes. They remember the addresses that a lost node had.
func (c *cluster) setVIP(b *boot, vip netip.Prefix) {
	c.site.mu.Lock()
	defer c.site.mu.Unlock()
	b.vip = vip
	if a := c.nodes[b.inst.nodeID]; a != nil && a.boot == b && len(b.addresses) > 0 {
		a.addresses, a.fingerprint = addrsOf(b.routed()), ""
	}
}

// namesVIP tells whether the machine's configuration names the virtual IP. The caller holds the site's mutex.
func (b *boot) namesVIP(vip netip.Addr) bool {
	address, ok := b.virtualIP(b.config)
	return ok && address == vip
}

// virtualIP is the VIP that the configuration declares for this machine's network card.
func (b *boot) virtualIP(cfg config.Provider) (netip.Addr, bool) {
	for _, d := range cfg.Machine().Network().Devices() {
		if vip := d.VIPConfig(); vip != nil && vip.IP() != "" && b.matchesLink(d.Interface(), selectedMAC(d)) {
			if a, err := netip.ParseAddr(vip.IP()); err == nil {
				return a, true
			}
		}
	}
	for _, v := range cfg.NetworkVirtualIPConfigs() {
		if b.matchesLink(v.Link(), "") {
			return v.VIP(), true
		}
	}
	return netip.Addr{}, false
}
