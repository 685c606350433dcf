package talos

import (
	"context"
	"fmt"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
)

// releaseOf is what an installer image installs. Its registry must have the image.
func (b *boot) releaseOf(image string) (release, error) {
	schematic, version := splitInstaller(image)
	r := release{version: version, schematic: schematic, secureBoot: strings.Contains(image, "-secureboot/")}
	var err error
	switch find := b.site.cfg.Installer; {
	case version == "":
		return r, fmt.Errorf("failed to pull image %q: failed to resolve reference %q: object required", image, image)
	case find != nil:
		r.extensions, err = find(image)
	case b.site.cfg.Extensions != nil:
		r.extensions, _ = b.site.cfg.Extensions(schematic)
	}
	if err == nil {
		err = b.imagePullError(image)
	}
	if err != nil {
		return r, fmt.Errorf("failed to pull image %q: failed to resolve reference %q: %w", image, image, err)
	}
	return r, nil
}

// installRelease writes a release beside the running one and makes it the one that boots next.
func (b *boot) installRelease(ctx context.Context, r release) error {
	b.printk("[talos] performing upgrade via %q", r.version)
	if err := sleep(ctx, b.site.cfg.Latency.Install); err != nil {
		return err
	}
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	former := b.inst.release
	b.inst.release, b.inst.former, b.inst.unproven = r, &former, true
	b.printk("[talos] upgrade successful")
	return nil
}

// installStaged installs the release that an earlier boot has staged. The node then reboots into it. It returns false if there is none.
func (b *boot) installStaged() bool {
	b.site.mu.Lock()
	staged := b.inst.staged
	b.inst.staged = nil
	b.site.mu.Unlock()
	if staged == nil {
		return false
	}
	b.events.sequence("install", "", machine.SequenceEvent_START)
	return b.installRelease(b.ctx, *staged) == nil
}

// proveUpgrade drops the way back that a boot that fails takes: the node runs, and is ready.
func (b *boot) proveUpgrade() {
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	if b.inst.unproven {
		b.inst.unproven = false
		b.printk("[talos] removing fallback entry {\"controller\": \"runtime.DropUpgradeFallbackController\"}")
	}
}

// revertUpgrade makes the former release boot next, if the release has not run since its upgrade.
func (b *boot) revertUpgrade() {
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	if b.inst == nil || !b.inst.unproven || b.inst.former == nil {
		return
	}
	b.printk("[talos] reverting failed upgrade, switching to %q", b.inst.former.version)
	b.inst.revert()
}

// revert exchanges the two releases on the disk. The caller holds the site's mutex.
func (i *installation) revert() {
	now := i.release
	i.release, i.former, i.unproven = *i.former, &now, false
}
