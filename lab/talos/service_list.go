package talos

import (
	"path"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/slipway-platform/slipway/lab/talos/service"
)

// serviceSpecs are the services of a node, with Talos's names and dependencies.
func (b *boot) serviceSpecs(cfg config.Provider, ready func()) []service.Spec {
	specs := []service.Spec{
		{ID: "machined"},
		{ID: "auditd"},
		{ID: "containerd"},
		{ID: "syslogd", Depends: []string{"machined"}},
		{ID: "dashboard", Depends: []string{"machined"}, Unchecked: true},
		{ID: "udevd"},
		{ID: "cri"},
		{ID: "apid", Depends: []string{"containerd"}, Prepare: b.prepareAPI, Started: func() error { ready(); return nil }},
		b.kubeletService(),
	}
	if cfg.Machine().Type().IsControlPlane() {
		specs = append(specs, service.Spec{ID: "trustd", Depends: []string{"containerd"}}, b.etcdService())
	}
	for _, e := range b.extensions {
		if spec, runs := b.extensionService(path.Base(e)); runs {
			specs = append(specs, spec)
		}
	}
	return specs
}

// followServices sets the stage to running once all services are up, and keeps the published status up to date.
func (b *boot) followServices() {
	for {
		changed := b.services.Changed()
		b.site.mu.Lock()
		stage := b.stage
		b.site.mu.Unlock()
		switch {
		case stage == StageStopping:
		case stage == StageBooting && b.services.AllUp():
			b.Printk("[talos] boot sequence: done")
			b.Events.Sequence("boot", "", machine.SequenceEvent_STOP)
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
