package talos

import (
	"context"
	"reflect"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"
	configconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
)

// extensionService is the service of a system extension; false if the extension has none.
func (b *boot) extensionService(name string) (serviceSpec, bool) {
	spec := serviceSpec{depends: []string{"containerd"}, unchecked: true, canStart: true, canStop: true, canRestart: true}
	waitFor := ""
	switch name {
	case "qemu-guest-agent":
		if !b.m.hw.Agent {
			waitFor = "Waiting for file \"/dev/virtio-ports/org.qemu.guest_agent.0\" to exist"
		}
	case "lldpd":
		spec.prepare = b.awaitServiceConfig(name)
	case "iscsi-tools":
		name = "iscsid"
	case "tailscale", "nut-client", "zfs":
	default:
		return serviceSpec{}, false // most extensions contain only firmware, modules or tools
	}
	spec.id = "ext-" + name
	if waitFor != "" {
		spec.prepare = func(ctx context.Context, report reportState) error {
			report(machine.ServiceStateEvent_WAITING, waitFor)
			<-ctx.Done()
			return errOff
		}
	}
	return spec, true
}

// awaitServiceConfig makes an extension's service wait until the machine configuration has the document that it
// requires.
func (b *boot) awaitServiceConfig(name string) func(context.Context, reportState) error {
	return func(ctx context.Context, report reportState) error {
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
			b.services.restart("ext-" + c.Name())
		}
	}
}
