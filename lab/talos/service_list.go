package talos

import (
	"context"
	"path"
	"reflect"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"
	configconfig "github.com/siderolabs/talos/pkg/machinery/config/config"

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

// extensionService is the service of a system extension; false if the extension has none.
func (b *boot) extensionService(name string) (service.Spec, bool) {
	spec := service.Spec{Depends: []string{"containerd"}, Unchecked: true, CanStart: true, CanStop: true, CanRestart: true}
	waitFor := ""
	switch name {
	case "qemu-guest-agent":
		if !b.m.hw.Agent {
			waitFor = "Waiting for file \"/dev/virtio-ports/org.qemu.guest_agent.0\" to exist"
		}
	case "lldpd":
		spec.Prepare = b.awaitServiceConfig(name)
	case "iscsi-tools":
		name = "iscsid"
	case "tailscale", "nut-client", "zfs":
	default:
		return service.Spec{}, false // most extensions contain only firmware, modules or tools
	}
	spec.ID = "ext-" + name
	if waitFor != "" {
		spec.Prepare = func(ctx context.Context, report service.Report) error {
			report(machine.ServiceStateEvent_WAITING, waitFor)
			<-ctx.Done()
			return errOff
		}
	}
	return spec, true
}

// awaitServiceConfig makes an extension's service wait until the machine configuration has the document that it
// requires.
func (b *boot) awaitServiceConfig(name string) func(context.Context, service.Report) error {
	return func(ctx context.Context, report service.Report) error {
		there := func() bool { return serviceConfig(b.config, name) != nil }
		b.site.mu.Lock()
		waits := !there()
		b.site.mu.Unlock()
		if waits {
			report(machine.ServiceStateEvent_WAITING, "Waiting for extension service config")
		}
		return b.site.waitUntil(ctx, there)
	}
}

// serviceConfig is the ExtensionServiceConfig of an extension, nil without one.
func serviceConfig(cfg config.Provider, name string) configconfig.ExtensionServiceConfig {
	all := cfg.ExtensionServiceConfigs()
	if i := slices.IndexFunc(all, func(c configconfig.ExtensionServiceConfig) bool { return c.Name() == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// restartExtensions restarts the services whose configuration has changed.
func (b *boot) restartExtensions(former, cfg config.Provider) {
	for _, c := range cfg.ExtensionServiceConfigs() {
		if before := serviceConfig(former, c.Name()); before != nil && !reflect.DeepEqual(before, c) {
			b.services.Restart("ext-" + c.Name())
		}
	}
}
