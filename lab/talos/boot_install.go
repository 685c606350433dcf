package talos

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"
	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/slipway-platform/slipway/lab/talos/image"
	"github.com/slipway-platform/slipway/lab/vm"
)

// install writes Talos and its configuration to disk and reboots.
func (b *boot) install(cfg config.Provider) ending {
	b.m.setReason("")
	b.setStage(StageInstalling)
	b.Events.Sequence("install", "", machine.SequenceEvent_START)
	key, disk, err := b.installDisk(cfg)
	if err != nil {
		return b.failInstall(err)
	}
	if wanted := cfg.Machine().Install().Image(); wanted != "" {
		b.Printk("[talos] installing Talos to disk %s from %s", deviceName(key), wanted)
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

// installDisk returns the disk that machine.install selects.
func (b *boot) installDisk(cfg config.Provider) (string, *vm.Disk, error) {
	install := cfg.Machine().Install()
	if install == nil {
		return "", nil, errors.New("no install instructions")
	}
	selector, err := install.DiskMatchExpression()
	if err != nil {
		return "", nil, err
	}
	disks := b.m.disks()
	for _, key := range diskKeys(disks) {
		device := deviceName(key)
		if selector != nil {
			proto := diskProto(key, disks[key], b.diskSize(key, disks[key]))
			matches, err := selector.EvalBool(celenv.DiskLocator(), map[string]any{"disk": proto, "system_disk": false})
			if err != nil {
				return "", nil, err
			}
			if matches {
				return key, disks[key], nil
			}
		} else if device == install.Disk() || slices.Contains(symlinks(key, disks[key]), install.Disk()) {
			return key, disks[key], nil
		}
	}
	return "", nil, fmt.Errorf("machine.install.disk: %q does not exist on this machine", install.Disk())
}

func randomBytes(n int) []byte {
	out := make([]byte, n)
	_, _ = rand.Read(out) // documented never to fail
	return out
}
