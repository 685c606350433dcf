package talos

import (
	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/slipway-platform/slipway/lab/talos/kubernetes"
)

// installed is the boot of a configured node from its disk.
func (b *boot) installed() ending {
	b.site.mu.Lock()
	cfg := b.inst.config
	b.site.mu.Unlock()
	if b.installStaged() {
		return b.reboot(b.disk)
	}
	if problem := b.devices.Open(cfg); problem != nil {
		return b.failBoot(problem)
	}
	if problem := b.writeFiles(cfg); problem != nil {
		return b.failBoot(problem)
	}
	b.persist(cfg)
	b.setConfig(cfg)
	b.addAddresses(ipv4First(b.nodeAddresses(cfg)))
	b.publishRoutes(cfg)
	b.setStage(StageBooting)
	for _, problem := range []error{b.rebootLoopError(), b.upgradeError()} {
		if problem != nil {
			return b.failBoot(problem)
		}
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
		b.site.change.Notify()
	}) {
		b.services.Start(spec)
	}
	b.wg.Go(b.followServices)
	if cfg.Machine().Type().IsControlPlane() {
		b.wg.Go(b.keepEtcdPKI)
		for _, c := range kubernetes.Components(cfg) {
			b.wg.Go(func() { b.keepStaticPod(c.Name) })
		}
	}
	return b.awaitEnd()
}

// setConfig makes a configuration the active one.
func (b *boot) setConfig(cfg config.Provider) {
	name := hostname(cfg, b.inst.nodeID)
	b.site.mu.Lock()
	b.config, b.hostname = cfg, name
	b.site.mu.Unlock()
	b.publishConfig(cfg, name)
	b.publishKernelParameters(cfg)
	b.devices.Provision(cfg)
}
