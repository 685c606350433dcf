package talos

import (
	"context"
	"reflect"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"
	configconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
)

// extensionService is the service of a system extension, if it has one.
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
		return serviceSpec{}, false // most extensions bring firmware, modules or tools only
	}
	spec.id = "ext-" + name
	if waitFor != "" {
		spec.prepare = func(ctx context.Context, say sayService) error {
			say(machine.ServiceStateEvent_WAITING, waitFor)
			<-ctx.Done()
			return errOff
		}
	}
	return spec, true
}

// awaitServiceConfig keeps an extension's service waiting until the machine configuration has the document that it
// cannot do without.
func (b *boot) awaitServiceConfig(name string) func(context.Context, sayService) error {
	return func(ctx context.Context, say sayService) error {
		there := func() bool { return serviceConfig(b.config, name) != nil }
		b.site.mu.Lock()
		waits := !there()
		b.site.mu.Unlock()
		if waits {
			say(machine.ServiceStateEvent_WAITING, "Waiting for extension service config")
		}
		return b.site.until(ctx, there)
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
