package config

import (
	"slices"
	"strings"
)

// official are system extensions that Talos's makers publish and that make sense on a VM. The list is not complete and
// need not be: it is there to recognise what was misspelt, which otherwise shows when the image factory fails.
var official = []string{
	"amd-ucode", "amdgpu", "binfmt-misc", "btrfs", "cloudflared", "crun", "drbd", "ecr-credential-provider", "fuse3", "glibc",
	"gvisor", "gvisor-debug", "hailort", "i915", "intel-ucode", "iscsi-tools", "kata-containers", "lldpd", "mdadm", "nebula", "netbird",
	"nfs-utils", "nfsrahead", "nonfree-kmod-nvidia-lts", "nonfree-kmod-nvidia-production", "nut-client", "nvidia-container-toolkit-lts",
	"nvidia-container-toolkit-production", "nvidia-open-gpu-kernel-modules-lts", "nvidia-open-gpu-kernel-modules-production",
	"nvme-cli", "qemu-guest-agent", "spin", "stargz-snapshotter", "tailscale", "thunderbolt", "uinput", "usb-modem-drivers",
	"util-linux-tools", "vmtoolsd-guest-agent", "wasmedge", "xen-guest-agent", "youki", "zfs",
}

const officialOwner = "siderolabs/"

// misspelt returns the official extension that differs from the one given in a letter or two, or "".
func misspelt(extension string) string {
	name, ours := strings.CutPrefix(extension, officialOwner)
	if !ours || slices.Contains(official, name) {
		return ""
	}
	for _, candidate := range official {
		if len(candidate) > 4 && distance(name, candidate) <= 2 {
			return officialOwner + candidate
		}
	}
	return ""
}
