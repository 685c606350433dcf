package talos

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"

	"github.com/slipway-platform/slipway/lab/talos/image"
	"github.com/slipway-platform/slipway/lab/talos/versions"
)

// releaseOf is what an installer image installs. Its registry must have the image.
func (b *boot) releaseOf(installer string) (release, error) {
	if _, err := reference.ParseDockerRef(installer); err != nil {
		return release{}, fmt.Errorf("failed to parse image reference %q: %w", installer, err)
	}
	schematic, version := image.Installer(installer)
	r := release{version: version, schematic: schematic, secureBoot: strings.Contains(installer, "-secureboot/")}
	var err error
	switch find := b.site.cfg.Installer; {
	case version == "":
		return r, fmt.Errorf("failed to pull image %q: failed to resolve reference %q: object required", installer, installer)
	case find != nil:
		r.extensions, err = find(installer)
	case b.site.cfg.Extensions != nil:
		r.extensions, _ = b.site.cfg.Extensions(schematic)
	}
	if err == nil {
		err = b.imagePullError(installer)
	}
	if err != nil {
		return r, fmt.Errorf("failed to pull image %q: failed to resolve reference %q: %w", installer, installer, err)
	}
	return r, nil
}

// upgradeTo is the task of a sequence that runs an installer. As in Talos, its output is in the kernel's log only.
func (b *boot) upgradeTo(ctx context.Context, r release) error {
	b.Printk("[talos] performing upgrade via %q", r.version)
	if code, err := b.runInstaller(ctx, r, func(line string) { b.Printk("%s", line) }); err != nil || code != 0 {
		return cmp.Or(err, fmt.Errorf("task \"upgrade\" failed: exit code %d", code))
	}
	b.Printk("[talos] upgrade successful")
	return nil
}

// runInstaller is the installer of a release: it writes the release to the disk, beside the one that boots next until then, and makes it
// the one that boots next. A third one is removed: after two installations without a reboot between them, that is the running release. It
// writes lines as Talos's installer does, without those about partitions and the firmware's boot order, and returns its exit code. The
// error is that of ctx.
func (b *boot) runInstaller(ctx context.Context, r release, line func(string)) (code int, err error) {
	log := func(format string, args ...any) {
		line(time.Now().Format("2006/01/02 15:04:05 ") + fmt.Sprintf(format, args...))
	}
	log("running Talos installer %s", r.version)
	log("running pre-flight checks")
	log("host Talos version: %s", b.version)
	if output, code := versions.Refused(r.version, b.version); code != 0 {
		for _, text := range output {
			line(text)
		}
		return code, nil
	}
	log("all pre-flight checks successful")
	if err := sleep(ctx, b.site.cfg.Latency.Install); err != nil {
		return 0, err
	}
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	former, files := b.inst.release, b.inst.files()
	r.entry = bootEntry(r.version, files...)
	log("sd-boot: found existing UKIs during upgrade: %v", files)
	for _, old := range files[1:] {
		log("removing old UKI: /boot/EFI/EFI/Linux/%s", old)
	}
	b.inst.release, b.inst.former, b.inst.unproven = r, &former, true
	log("updating EFI variables")
	log("installation of %s complete", r.version)
	return 0, nil
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
	b.Events.Sequence("install", "", machine.SequenceEvent_START)
	return b.upgradeTo(b.ctx, *staged) == nil
}

// proveUpgrade drops the way back that a boot that fails takes: the node runs, and is ready.
func (b *boot) proveUpgrade() {
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	if b.inst == nil || b.entry != b.inst.entry { // another release is installed meanwhile
		return
	}
	b.inst.ran = true
	if b.inst.unproven {
		b.inst.unproven = false
		b.Printk("[talos] removing fallback entry {\"controller\": \"runtime.DropUpgradeFallbackController\"}")
	}
}

// revertUpgrade makes the former release boot next, if the release has not run since its upgrade.
func (b *boot) revertUpgrade() {
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	if b.inst == nil || !b.inst.unproven || b.inst.former == nil {
		return
	}
	b.Printk("[talos] reverting failed upgrade, switching to %q", b.inst.former.version)
	b.inst.revert()
}

// revert exchanges the two releases on the disk. The caller holds the site's mutex.
func (i *installation) revert() {
	now := i.release
	i.release, i.former, i.unproven = *i.former, &now, false
}
