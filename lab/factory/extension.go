package factory

import "slices"

// official are the extensions that the lab's factory offers, for every version: those that a Proxmox cluster is likely
// to use. As at the public factory, a schematic with another extension is accepted, but its image is refused.
var official = []extension{
	{"siderolabs/amd-ucode", "20251111", "AMD processors' microcode"},
	{"siderolabs/drbd", "9.2.16", "DRBD kernel module"},
	{"siderolabs/gvisor", "20250505.0", "gVisor container runtime"},
	{"siderolabs/i915", "20251111", "Intel integrated graphics firmware and driver"},
	{"siderolabs/intel-ucode", "20251111", "Intel processors' microcode"},
	{"siderolabs/iscsi-tools", "v0.2.0", "iSCSI initiator"},
	{"siderolabs/lldpd", "1.0.20", "Link Layer Discovery Protocol daemon"},
	{"siderolabs/nfsd", "v1.12.7", "NFS server kernel module"},
	{"siderolabs/nvidia-container-toolkit-production", "570.195.03-v1.18.1", "NVIDIA container toolkit"},
	{"siderolabs/qemu-guest-agent", "10.1.2", "QEMU guest agent"},
	{"siderolabs/tailscale", "1.90.9", "Tailscale"},
	{"siderolabs/util-linux-tools", "2.41.2", "fstrim, nsenter and other tools"},
	{"siderolabs/zfs", "2.4.0", "ZFS kernel module"},
}

type extension struct {
	name, version, description string
}

// unknown returns the extensions that are not offered.
func unknown(names []string) []string {
	var out []string
	for _, name := range names {
		if !slices.ContainsFunc(official, func(e extension) bool { return e.name == name }) {
			out = append(out, name)
		}
	}
	return out
}
