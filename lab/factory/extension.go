package factory

import "slices"

// official are the extensions that the lab's factory offers, for every version: those that a Proxmox cluster is likely
// to use, and those with an alias. As at the public factory, a schematic with another extension is accepted, but its
// image is refused.
var official = []extension{
	{"siderolabs/amd-ucode", "20251111", "AMD processors' microcode"},
	{"siderolabs/amdgpu", "20251111", "AMD graphics firmware and driver"},
	{"siderolabs/drbd", "9.2.16", "DRBD kernel module"},
	{"siderolabs/gasket-driver", "97aeba5", "Gasket driver of Coral devices"},
	{"siderolabs/gvisor", "20250505.0", "gVisor container runtime"},
	{"siderolabs/i915", "20251111", "Intel integrated graphics firmware and driver"},
	{"siderolabs/intel-ucode", "20251111", "Intel processors' microcode"},
	{"siderolabs/iscsi-tools", "v0.2.0", "iSCSI initiator"},
	{"siderolabs/lldpd", "1.0.20", "Link Layer Discovery Protocol daemon"},
	{"siderolabs/nfsd", "v1.12.7", "NFS server kernel module"},
	{"siderolabs/nonfree-kmod-nvidia-lts", "570.195.03-v1.12.7", "NVIDIA kernel modules"},
	{"siderolabs/nvidia-container-toolkit-lts", "570.195.03-v1.18.1", "NVIDIA container toolkit"},
	{"siderolabs/nvidia-container-toolkit-production", "570.195.03-v1.18.1", "NVIDIA container toolkit"},
	{"siderolabs/nvidia-fabric-manager-lts", "570.195.03", "NVIDIA fabric manager"},
	{"siderolabs/nvidia-open-gpu-kernel-modules-lts", "570.195.03-v1.12.7", "NVIDIA open GPU kernel modules"},
	{"siderolabs/qemu-guest-agent", "10.1.2", "QEMU guest agent"},
	{"siderolabs/tailscale", "1.90.9", "Tailscale"},
	{"siderolabs/usb-modem-drivers", "v1.12.7", "USB modem drivers"},
	{"siderolabs/util-linux-tools", "2.41.2", "fstrim, nsenter and other tools"},
	{"siderolabs/v4l-uvc-drivers", "v1.12.7", "USB video class drivers"},
	{"siderolabs/vmtoolsd-guest-agent", "v1.4.0", "VMware guest agent"},
	{"siderolabs/xen-guest-agent", "0.4.0", "Xen guest agent"},
	{"siderolabs/zfs", "2.4.0", "ZFS kernel module"},
}

type extension struct {
	name, version, description string
}

// aliases are former or wrong names of extensions. The factory uses them only if it offers no extension of that name.
var aliases = map[string]string{
	"siderolabs/amdgpu-firmware":                "siderolabs/amdgpu",
	"siderolabs/gasket":                         "siderolabs/gasket-driver",
	"siderolabs/i915-ucode":                     "siderolabs/i915",
	"siderolabs/nonfree-kmod-nvidia":            "siderolabs/nonfree-kmod-nvidia-lts",
	"siderolabs/nvidia-container-toolkit":       "siderolabs/nvidia-container-toolkit-lts",
	"siderolabs/nvidia-fabricmanager":           "siderolabs/nvidia-fabric-manager-lts",
	"siderolabs/nvidia-open-gpu-kernel-modules": "siderolabs/nvidia-open-gpu-kernel-modules-lts",
	"siderolabs/talos-vmtoolsd":                 "siderolabs/vmtoolsd-guest-agent",
	"siderolabs/usb-modem":                      "siderolabs/usb-modem-drivers",
	"siderolabs/v4l-uvc":                        "siderolabs/v4l-uvc-drivers",
	"siderolabs/xe-guest-utilities":             "siderolabs/xen-guest-agent",
}

// resolve returns the extensions that an image gets for the names in its schematic, or the first name that is not
// offered.
func resolve(names []string) (extensions []string, missing string) {
	for _, name := range names {
		found := slices.IndexFunc(official, func(e extension) bool { return e.name == name })
		if found < 0 {
			found = slices.IndexFunc(official, func(e extension) bool { return e.name == aliases[name] })
		}
		if found < 0 {
			return nil, name
		}
		extensions = append(extensions, official[found].name)
	}
	return extensions, ""
}
