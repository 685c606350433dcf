// Package vm is the seam between the simulated Proxmox VE and what runs inside its virtual machines: the hardware a
// guest sees, and the guest as the hypervisor sees it. It holds no behaviour.
package vm

import (
	"context"
	"net/netip"
)

// Hardware is what a guest finds when its VM is powered on.
type Hardware struct {
	Host      string // Proxmox VE node the VM runs on, e.g. "pve1"
	ID        int    // VM id
	Name      string // VM name
	Cores     int
	MemoryMiB int
	UEFI      bool
	NICs      []NIC
	BootOrder []string         // drive keys in boot order, e.g. scsi0, ide3
	Disks     map[string]*Disk // by drive key, e.g. scsi0
	ISO       *Image           // boot medium in a CD-ROM drive; nil if none
	CloudInit *CloudInit       // nil without a cloud-init drive
	Agent     bool             // the VM has the QEMU guest agent's channel
	TPM       bool             // the VM has a TPM 2.0
}

// NIC is a network card.
type NIC struct {
	MAC    string // upper case, colon separated
	Bridge string
	VLAN   int // 0: untagged
}

// Disk is a virtual disk. It outlives power cycles and ends with its volume.
type Disk struct {
	Volume string // e.g. "local-lvm:vm-1111-disk-0"
	Size   int64  // bytes
	Serial string // as given to the drive; empty: QEMU's own, "drive-" and the drive key
	// Content is what the guest wrote: the guest's own type, nil on an empty disk. The hypervisor never looks at it.
	// Only the guest of the VM that holds the disk reads and writes it, and only while it is powered on.
	Content any
}

// Image is a boot medium from the image factory.
type Image struct {
	Name       string   // file name on the datastore
	Version    string   // Talos version, e.g. "v1.12.7"
	Schematic  string   // schematic id
	Platform   string   // e.g. "nocloud"
	Extensions []string // official system extensions in the schematic, e.g. "siderolabs/qemu-guest-agent"
	SecureBoot bool     // it is signed, and the machine boots by SecureBoot
}

// CloudInit is the content of a cloud-init drive.
type CloudInit struct {
	Addresses []netip.Prefix // of the first NIC
	Gateways  []netip.Addr
	DNS       []netip.Addr
}

// Interface is a network interface as the QEMU guest agent reports it.
type Interface struct {
	Name      string
	MAC       string
	Addresses []netip.Prefix
}

// Guest is a powered-on machine. Its methods are safe for concurrent use.
type Guest interface {
	// Shutdown asks for a clean shutdown by ACPI and waits for it.
	Shutdown(ctx context.Context) error
	// PowerOff ends the guest at once.
	PowerOff()
	// Interfaces is what the guest agent answers; false while no agent runs in the guest.
	Interfaces() ([]Interface, bool)
	// Done is closed when the guest is off, whoever ended it.
	Done() <-chan struct{}
}

// Firmware powers machines on. It returns at once; the guest boots in the background and takes its time. A guest's
// own reboots are its own affair: the VM stays "running".
type Firmware interface {
	PowerOn(hw Hardware) Guest
}
