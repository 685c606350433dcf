package talos

import (
	"path"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/slipway-platform/slipway/lab/vm"
)

// installation is Talos on a disk; it is the disk's content, and so outlives power cycles. Its fields are guarded by
// the site's mutex.
type installation struct {
	config     config.Provider // persisted machine configuration
	version    string          // Talos version
	schematic  string
	platform   string
	extensions []string
	nodeID     string  // identity, made at installation
	machineID  string  // hex, as in /etc/machine-id
	etcd       *member // etcd's data directory; nil while it is empty
	wiped      bool    // the disk was reset: nothing of this is there any more
}

// installedOn returns what is installed on a disk, nil if nothing is.
func installedOn(d *vm.Disk) *installation {
	inst, ok := d.Content.(*installation)
	if !ok || inst.wiped {
		return nil
	}
	return inst
}

// bootSource finds the first bootable drive: an installation on a disk, or the boot medium. Both are nil if none is.
func bootSource(hw vm.Hardware) (*vm.Disk, *vm.Image) {
	for _, key := range hw.BootOrder {
		disk, isDisk := hw.Disks[key]
		switch {
		case isDisk && installedOn(disk) != nil:
			return disk, nil
		case !isDisk && hw.ISO != nil:
			return nil, hw.ISO
		}
	}
	return nil, nil
}

// anyInstalled reports whether any disk of the machine carries Talos.
func anyInstalled(hw vm.Hardware) bool {
	for _, d := range hw.Disks {
		if installedOn(d) != nil {
			return true
		}
	}
	return false
}

// deviceName is the kernel's name of a drive: scsi0 and sata0 are /dev/sda, virtio1 is /dev/vdb.
func deviceName(key string) string {
	for _, bus := range []struct{ prefix, device string }{{"scsi", "sd"}, {"sata", "sd"}, {"virtio", "vd"}} {
		if n, found := strings.CutPrefix(key, bus.prefix); found && len(n) == 1 && n[0] >= '0' && n[0] <= '9' {
			return "/dev/" + bus.device + string('a'+n[0]-'0')
		}
	}
	return ""
}

// splitInstaller takes an installer image reference of an image factory apart:
// factory.talos.dev/nocloud-installer/<schematic>:<version>. An image without schematic carries no extensions.
func splitInstaller(image string) (schematic, version string) {
	version = imageTag(image)
	name := strings.TrimSuffix(image, ":"+version)
	if strings.HasSuffix(path.Base(path.Dir(name)), "installer") {
		schematic = path.Base(name)
	}
	return schematic, version
}
