package talos

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/slipway-platform/slipway/lab/talos/block"
	"github.com/slipway-platform/slipway/lab/talos/image"
)

// install writes Talos and its configuration to disk and reboots.
func (b *boot) install(cfg config.Provider) ending {
	b.m.setReason("")
	b.setStage(StageInstalling)
	b.Events.Sequence("install", "", machine.SequenceEvent_START)
	key, disk, err := b.m.disks.ForInstall(cfg.Machine().Install())
	if err != nil {
		return b.failInstall(err)
	}
	if wanted := cfg.Machine().Install().Image(); wanted != "" {
		b.Printk("[talos] installing Talos to disk %s from %s", block.DeviceName(key), wanted)
	}
	if err := b.pullInstaller(cfg.Machine().Install().Image()); err != nil {
		if b.ctx.Err() != nil {
			return endOff
		}
		return b.failInstall(err)
	}
	installed := b.site.cfg.Latency.Record.Begin("installation", b.m.hw.Name)
	if sleep(b.ctx, b.site.cfg.Latency.Install) != nil {
		return endOff
	}
	installed()
	if err := b.installError(); err != nil {
		b.site.mu.Lock()
		disk.Content = partitioned{}
		b.site.mu.Unlock()
		return b.failInstall(err)
	}
	inst := &installation{
		config: cfg, platform: b.iso.Platform, images: image.NewStore(),
		release: release{version: b.version, schematic: b.schematic, extensions: b.iso.Extensions, secureBoot: b.iso.SecureBoot && b.m.hw.UEFI},
		nodeID:  base64.RawURLEncoding.EncodeToString(randomBytes(32)), machineID: hex.EncodeToString(randomBytes(16)),
	}
	if installer := cfg.Machine().Install().Image(); installer != "" {
		schematic, version := image.Installer(installer)
		inst.secureBoot = inst.secureBoot && strings.Contains(installer, "-secureboot/")
		if version != "" {
			inst.version = version
		}
		if schematic != b.schematic {
			inst.schematic, inst.extensions = schematic, nil
			if b.site.cfg.Extensions != nil {
				inst.extensions, _ = b.site.cfg.Extensions(schematic)
			}
		}
	}
	inst.entry, inst.ran = bootEntry(inst.version), true
	b.site.mu.Lock()
	disk.Content = inst
	b.site.mu.Unlock()
	b.Printk("[talos] installation of %s complete", inst.version)
	b.Events.Sequence("install", "", machine.SequenceEvent_STOP)
	return b.reboot(disk)
}

// Talos gives up after as many answers that there is no such image, and after as much time in any other case (Pull in
// internal/pkg/containers/image of Talos 1.13.9). It waits longer between them.
const (
	mostNotFound = 6
	pullTimeout  = 20 * time.Minute
)

// pullInstaller pulls the image of the installer.
func (b *boot) pullInstaller(ref string) error {
	if _, version := image.Installer(ref); version == "" {
		return nil
	}
	for began, missing := time.Now(), 0; ; {
		_, err := b.releaseOf(ref)
		if err == nil {
			return nil
		}
		if strings.HasSuffix(err.Error(), "not found") {
			missing++
		}
		if missing == mostNotFound || time.Since(began) > pullTimeout {
			return err
		}
		b.Printk("[talos] retrying: %v", err)
		if err := sleep(b.ctx, pullPause); err != nil {
			return err
		}
	}
}

// failInstall reports the error and reboots after a while, as Talos does: into maintenance mode, if no disk was partitioned.
func (b *boot) failInstall(err error) ending {
	b.Printk("[talos] install sequence: failed: %v", err)
	b.m.setReason("install failed: " + err.Error())
	b.Events.SequenceError("install", err)
	if sleep(b.ctx, b.site.cfg.Latency.Install) != nil {
		return endOff
	}
	return endReboot
}

func randomBytes(n int) []byte {
	out := make([]byte, n)
	_, _ = rand.Read(out) // documented never to fail
	return out
}
