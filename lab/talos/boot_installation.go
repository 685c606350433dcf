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
	secureBoot bool    // it boots by SecureBoot
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

// splitInstaller takes an installer image reference of an image factory apart:
// factory.talos.dev/nocloud-installer/<schematic>:<version>, or nocloud-installer-secureboot. An image without schematic carries no extensions.
func splitInstaller(image string) (schematic, version string) {
	version = imageTag(image)
	name := strings.TrimSuffix(image, ":"+version)
	if kind := strings.TrimSuffix(path.Base(path.Dir(name)), "-secureboot"); strings.HasSuffix(kind, "installer") {
		schematic = path.Base(name)
	}
	return schematic, version
}
