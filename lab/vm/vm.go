// Package vm holds the types that the simulated Proxmox VE and the guests in its virtual machines share: the hardware
// that a guest has, and the guest as the hypervisor controls it. It has no behaviour.
package vm

import (
	"context"
	"net/netip"
)

// Hardware is the hardware of a VM at power-on.
type Hardware struct {
	Host      string // Proxmox VE node the VM runs on, e.g. "pve1"
	ID        int    // VM id
	Name      string // VM name
	Cores     int
	MemoryMiB int
	UEFI      bool
	EFI       *Disk  // variables of the UEFI firmware; nil: they are lost at power-off
	Q35       bool   // the chipset is Q35; false: i440FX
	UUID      string // of SMBIOS
	NICs      []NIC
	BootOrder []string         // drive keys in boot order, e.g. scsi0, ide3
	Disks     map[string]*Disk // by drive key, e.g. scsi0
	ISO       *Image           // image in a CD-ROM drive; nil if none
	CloudInit *CloudInit       // nil without a cloud-init drive
	Agent     bool             // the VM has the QEMU guest agent's channel
	TPM       *Disk            // the state of the VM's TPM 2.0, whose keys end with it; nil without one
}

// NIC is a network card.
type NIC struct {
	MAC    string // upper case, colon separated
	Bridge string
	VLAN   int // 0: untagged
}

// Disk is a virtual disk. It survives power cycles and ends with its volume.
type Disk struct {
	Volume string // e.g. "local-lvm:vm-1111-disk-0"; another one after a move to another storage
	Size   int64  // bytes
	Serial string // as given to the drive; empty: QEMU's own, "drive-" and the drive key
	// Content is what the guest wrote, in a type of the guest's own; nil on an empty disk. The hypervisor does not use
	// it. Only the guest of the VM that has the disk reads and writes it, and only while it is powered on. If it is an io.Closer, the
	// hypervisor closes it with the volume's removal.
	Content any
}

// Image is a boot image from the image factory.
type Image struct {
	Name       string   // file name on the datastore
	Drive      string   // key of the drive that it is in, e.g. ide3
	Version    string   // Talos version, e.g. "v1.12.7"
	Schematic  string   // schematic id
	Platform   string   // e.g. "nocloud"
	Extensions []string // official system extensions in the schematic, e.g. "siderolabs/qemu-guest-agent"
	SecureBoot bool     // it is signed; a UEFI machine boots it with SecureBoot
}

// CloudInit is the content of a cloud-init drive.
type CloudInit struct {
	Drive     string         // key of the drive, e.g. ide2
	Addresses []netip.Prefix // of the first NIC
	Gateways  []netip.Addr
	DNS       []netip.Addr
	Instance  string   // instance id: another one after each change of what is on the drive
	Search    []string // DNS search domains
}

// Interface is a network interface as the QEMU guest agent reports it.
type Interface struct {
	Name      string
	MAC       string
	Addresses []netip.Prefix
}

// Guest is a VM that is powered on. Its methods are safe for concurrent use.
type Guest interface {
	// Shutdown requests a shutdown by ACPI and waits for it.
	Shutdown(ctx context.Context) error
	// PowerOff ends the guest at once.
	PowerOff()
	// Interfaces returns the guest agent's answer; false while no agent runs in the guest.
	Interfaces() ([]Interface, bool)
	// Plug tells all disks that the VM has now, by drive key, when disks are plugged in or out while it runs. The map does not change. It
	// must not call the hypervisor.
	Plug(disks map[string]*Disk)
	// Grown tells that the hypervisor has made a disk larger while the VM runs: its drive key, and its size in bytes now. The Size of the
	// Disk stays as it is until the next power-on.
	Grown(key string, size int64)
	// Moved tells that the running VM was migrated to another host.
	Moved(host string)
	// Done is closed when the guest is off.
	Done() <-chan struct{}
}

// Firmware powers machines on. PowerOn returns at once; the guest boots in the background. While a guest reboots, its
// VM stays "running".
type Firmware interface {
	PowerOn(hw Hardware) Guest
}
