package talos

import (
	"path"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"
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

// followServices sets the stage to running once all services are up, and keeps the published status up to date.
func (b *boot) followServices() {
	for {
		changed := b.services.change.Changed()
		b.site.mu.Lock()
		stage := b.stage
		b.site.mu.Unlock()
		switch {
		case stage == StageStopping:
		case stage == StageBooting && len(b.services.notUp()) == 0:
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
