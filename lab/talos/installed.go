package talos

import (
	"context"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"
)

// installed is the boot from disk: the configured node.
func (b *boot) installed() ending {
	b.site.mu.Lock()
	cfg := b.inst.config
	b.site.mu.Unlock()
	if problem := b.systemVolumeProblem(cfg); problem != nil {
		return b.failBoot(problem)
	}
	b.adopt(cfg)
	b.bringUp(ipv4First(b.nodeAddresses(cfg)))
	b.publishRoutes(cfg)
	b.setStage(StageBooting)
	if err := b.rebootLoopError(); err != nil {
		return b.failBoot(err)
	}
	b.m.setReason("")
	b.joinCluster(cfg)
	server, conn, err := b.serveMachined()
	if err != nil {
		b.log.Error("machined", "error", err)
		<-b.ctx.Done()
		return endOff
	}
	b.onEnd(func() {
		server.Stop()
		_ = conn.Close()
	})
	for _, spec := range b.serviceSpecs(cfg, func() {
		b.site.mu.Lock()
		b.machined = conn
		b.site.mu.Unlock()
		b.site.change.notify()
	}) {
		b.services.start(spec)
	}
	b.wg.Go(b.followServices)
	return b.await()
}

// adopt makes a configuration the active one.
func (b *boot) adopt(cfg config.Provider) {
	name := hostname(cfg, b.inst.nodeID)
	b.site.mu.Lock()
	b.config, b.hostname = cfg, name
	b.site.mu.Unlock()
	b.publishConfig(cfg, name)
	b.provision(cfg)
}

// hostname is the configured one, or the stable one that Talos makes up.
func hostname(cfg config.Provider, nodeID string) string {
	if h := cfg.NetworkHostnameConfig(); h != nil && h.Hostname() != "" {
		name, _, _ := strings.Cut(h.Hostname(), ".")
		return name
	}
	id := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(nodeID))
	return fmt.Sprintf("talos-%s-%s", id[:3], id[3:6])
}

// nodeAddresses are those of the configuration for this machine's card, and those of the cloud-init drive, which a
// configured node keeps unless it ignores the link. A device that does not match the card is no device.
func (b *boot) nodeAddresses(cfg config.Provider) []netip.Prefix {
	var out []netip.Prefix
	add := func(p netip.Prefix) {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	ignored := false
	for _, d := range cfg.Machine().Network().Devices() {
		mac := ""
		if sel := d.Selector(); sel != nil {
			if mac = sel.HardwareAddress(); mac == "" {
				mac = sel.PermanentAddress()
			}
		}
		if !b.matchesLink(d.Interface(), mac) {
			b.printk("[talos] no link matches device %q %q of the machine configuration", d.Interface(), mac)
			continue
		}
		ignored = ignored || d.Ignore()
		for _, a := range d.Addresses() {
			if p, err := parsePrefix(a); err == nil {
				add(p)
			} else {
				b.printk("[talos] address %q of the machine configuration: %v", a, err)
			}
		}
	}
	for _, link := range cfg.NetworkCommonLinkConfigs() {
		if b.matchesLink(link.Name(), "") {
			for _, a := range link.Addresses() {
				add(a.Address())
			}
		}
	}
	if !ignored {
		for _, p := range b.cloudInit() {
			add(p)
		}
	}
	return out
}

func parsePrefix(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.ParsePrefix(s)
}

// virtualIP is the VIP that the configuration asks for on this machine's card.
func (b *boot) virtualIP(cfg config.Provider) (netip.Addr, bool) {
	for _, d := range cfg.Machine().Network().Devices() {
		mac := ""
		if sel := d.Selector(); sel != nil {
			mac = sel.HardwareAddress()
		}
		if vip := d.VIPConfig(); vip != nil && vip.IP() != "" && b.matchesLink(d.Interface(), mac) {
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

// serviceSpecs are the services of a node, in Talos's words and order of dependence.
func (b *boot) serviceSpecs(cfg config.Provider, ready func()) []serviceSpec {
	specs := []serviceSpec{
		{id: "machined"},
		{id: "auditd"},
		{id: "containerd"},
		{id: "syslogd", depends: []string{"machined"}},
		{id: "dashboard", depends: []string{"machined"}, unchecked: true},
		{id: "udevd"},
		{id: "cri"},
		{id: "apid", depends: []string{"containerd"}, prepare: b.prepareAPI, started: func() error { ready(); return nil }},
		b.kubeletService(),
	}
	if cfg.Machine().Type().IsControlPlane() {
		specs = append(specs, serviceSpec{id: "trustd", depends: []string{"containerd"}}, b.etcdService())
	}
	for _, e := range b.extensions {
		if spec, runs := b.extensionService(path.Base(e)); runs {
			specs = append(specs, spec)
		}
	}
	return specs
}

// prepareAPI gets apid its certificate: control planes sign their own, workers wait for a control plane's trustd.
func (b *boot) prepareAPI(ctx context.Context, say sayService) error {
	b.site.mu.Lock()
	cfg, addresses, name := b.config, addrsOf(b.addresses), b.hostname
	b.site.mu.Unlock()
	if len(addresses) == 0 {
		say(machine.ServiceStateEvent_WAITING, "Waiting for api certificates")
		<-ctx.Done()
		return errOff
	}
	issuer := issuingCA(cfg)
	if issuer == nil {
		say(machine.ServiceStateEvent_WAITING, "Waiting for api certificates")
		err := b.site.until(ctx, func() bool {
			for _, m := range b.site.machines {
				if o := m.boot; o != nil && o.config != nil && o.machined != nil && trusts(o.config, cfg) {
					issuer = issuingCA(o.config)
					return true
				}
			}
			return false
		})
		if err != nil {
			return err
		}
	}
	tlsConfig, err := machineTLS(cfg, issuer, addresses, []string{name})
	if err != nil {
		return err
	}
	return b.serveAPI(tlsConfig, addresses)
}

// followServices moves the node to running once everything is up, and keeps its status true after that.
func (b *boot) followServices() {
	for {
		changed := b.services.change.changed()
		b.site.mu.Lock()
		stage := b.stage
		b.site.mu.Unlock()
		switch {
		case stage == StageStopping:
		case stage == StageBooting && len(b.services.unmet()) == 0:
			b.printk("[talos] boot sequence: done")
			b.events.sequence("boot", "", machine.SequenceEvent_STOP)
			b.setStage(StageRunning)
		default:
			b.publishStatus()
		}
		select {
		case <-changed:
		case <-b.ctx.Done():
			return
		}
	}
}

func addrsOf(prefixes []netip.Prefix) []netip.Addr {
	var out []netip.Addr
	for _, p := range prefixes {
		out = append(out, p.Addr())
	}
	return out
}
