package talos

import (
	"context"
	"path"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/slipway-platform/slipway/lab/talos/trustd"
)

// serviceSpecs are the services of a node, with Talos's names and dependencies.
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

// prepareAPI creates apid's certificate. Control planes sign their own, workers wait for trustd of a control plane.
func (b *boot) prepareAPI(ctx context.Context, report reportState) error {
	b.site.mu.Lock()
	cfg, addresses, name := b.config, addrsOf(b.addresses), b.hostname
	b.site.mu.Unlock()
	if len(addresses) == 0 {
		report(machine.ServiceStateEvent_WAITING, "Waiting for api certificates")
		<-ctx.Done()
		return errOff
	}
	issuer := trustd.IssuingCA(cfg)
	if issuer == nil {
		report(machine.ServiceStateEvent_WAITING, "Waiting for api certificates")
		err := b.site.waitUntil(ctx, func() bool {
			for _, m := range b.site.machines {
				if o := m.boot; o != nil && o.config != nil && o.machined != nil && trustd.Signs(o.config, cfg) {
					issuer = trustd.IssuingCA(o.config)
					return true
				}
			}
			return false
		})
		if err != nil {
			return err
		}
	}
	tlsConfig, err := trustd.MachineTLS(cfg, issuer, addresses, []string{name})
	if err != nil {
		return err
	}
	return b.serveAPI(tlsConfig, addresses)
}

// followServices sets the stage to running once all services are up, and keeps the published status up to date.
func (b *boot) followServices() {
	for {
		changed := b.services.change.changed()
		b.site.mu.Lock()
		stage := b.stage
		b.site.mu.Unlock()
		switch {
		case stage == StageStopping:
		case stage == StageBooting && len(b.services.notUp()) == 0:
			b.printk("[talos] boot sequence: done")
			b.events.sequence("boot", "", machine.SequenceEvent_STOP)
			b.setStage(StageRunning)
			b.proveUpgrade()
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
