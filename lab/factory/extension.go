package factory

import "slices"

// official are the extensions that the lab's factory offers, for every version: extensions that a Proxmox cluster is likely to use, and
// extensions with an alias. As at the public factory, a schematic with another extension is accepted, but its image is refused.
var official = []string{
	"siderolabs/amd-ucode",
	"siderolabs/amdgpu",
	"siderolabs/drbd",
	"siderolabs/gasket-driver",
	"siderolabs/gvisor",
	"siderolabs/i915",
	"siderolabs/intel-ucode",
	"siderolabs/iscsi-tools",
	"siderolabs/lldpd",
	"siderolabs/nfsd",
	"siderolabs/nonfree-kmod-nvidia-lts",
	"siderolabs/nvidia-container-toolkit-lts",
	"siderolabs/nvidia-container-toolkit-production",
	"siderolabs/nvidia-fabric-manager-lts",
	"siderolabs/nvidia-open-gpu-kernel-modules-lts",
	"siderolabs/qemu-guest-agent",
	"siderolabs/tailscale",
	"siderolabs/usb-modem-drivers",
	"siderolabs/util-linux-tools",
	"siderolabs/v4l-uvc-drivers",
	"siderolabs/vmtoolsd-guest-agent",
	"siderolabs/xen-guest-agent",
	"siderolabs/zfs",
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
		if !slices.Contains(official, name) {
			alias, known := aliases[name]
			if !known {
				return nil, name
			}
			name = alias
		}
		extensions = append(extensions, name)
	}
	return extensions, ""
}
