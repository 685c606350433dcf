package syntax

import (
	"regexp"
	"slices"
	"strings"
)

// NoSnapshot is the snapshot-file that stands for none.
const NoSnapshot = "none"

// InBucket begins a snapshot-file that is an object of the bucket for snapshots; its key follows.
const InBucket = "bucket:"

// FirstDisk is the device of the first SCSI disk of a VM with one disk.
const FirstDisk = "/dev/sda"

var (
	extensionForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?/[a-z0-9][a-z0-9._-]*$`)
	camelCase     = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	furtherForm   = regexp.MustCompile(`drive-scsi[1-9]`)
	partitionForm = regexp.MustCompile(`^(` + FirstDisk + `[0-9]+|/dev/disk/by-(id|path)/.*-part[0-9]+|` +
		`/dev/disk/by-(uuid|label|partuuid|partlabel)/.*)$`)
)

var talosForms = []Form{
	{
		Name: "system-extension", What: "the name of a system extension", Words: "`OWNER/NAME`", Example: "siderolabs/qemu-guest-agent",
		Pattern: extensionForm.String(),
		check: func(value string) *Fault {
			switch {
			case !strings.Contains(value, "/"):
				return because("has no owner")
			case extensionForm.MatchString(value) && misspelt(value) != "":
				return because("is not an official extension")
			}
			return nil
		},
		fix: fixExtension,
	},
	{
		Name: "kubelet-flag", What: "a flag of the kubelet", Words: "flag, without its dashes", Example: "image-gc-high-threshold",
		Pattern: `^[a-z0-9]+(-[a-z0-9]+)*$`,
		check: func(value string) *Fault {
			switch {
			case strings.HasPrefix(value, "-"):
				return because("is written with its dashes")
			case strings.Contains(value, "="):
				return because("has a value in it", "write the value behind the colon")
			}
			return nil
		},
		fix: func(value string) []string {
			bare := camelCase.ReplaceAllString(strings.TrimLeft(value, "-"), "$1-$2") // the field of the kubelet's configuration
			return []string{strings.ToLower(strings.ReplaceAll(bare, "_", "-"))}
		},
	},
	{
		Name: "sysctl", What: "the name of a kernel parameter", Words: "kernel parameter", Example: "net.core.somaxconn",
		Pattern: `^[a-z0-9_-]+([./][0-9A-Za-z_:@+-]+)+$`,
		fix: func(value string) []string {
			bare := strings.TrimPrefix(strings.TrimPrefix(value, "/"), "proc/sys/")
			name, _, _ := strings.Cut(bare, "=")
			return []string{strings.Trim(name, " ./"), strings.ToLower(strings.Trim(name, " ./"))}
		},
	},
	{
		Name: "device", What: "the VMs' system disk, which is the first on a SCSI bus", Words: "`" + FirstDisk + "`, or a path below `/dev/disk`",
		Example: FirstDisk, Pattern: `^(` + FirstDisk + `|/dev/disk/by-(id|path|diskseq)/[0-9A-Za-z_.:@+=-]+)$`,
		check: func(value string) *Fault {
			switch {
			case partitionForm.MatchString(value):
				return because("is a partition or file system, and Talos is installed to a whole disk")
			case furtherForm.MatchString(value):
				return because("is a data disk, and Talos is installed to the first disk", "write "+FirstDisk)
			case strings.Contains(value, ".."):
				return wrong()
			}
			return nil
		},
		fix: func(value string) []string {
			if value != "" && strings.HasSuffix(FirstDisk, "/"+value) { // sda, dev/sda
				return []string{FirstDisk}
			}
			if i := strings.LastIndex(value, "-part"); i > 0 {
				return []string{value[:i]}
			}
			return nil
		},
		remedy: "write " + FirstDisk + ", or a path below /dev/disk/by-id or by-path",
	},
	{
		Name: "snapshot-file", What: "the file of a snapshot", Words: "file name, absolute path, `" + InBucket + "KEY`, or `" + NoSnapshot + "`",
		Example: "infra-20260102T030405Z.db",
		Pattern: `^((/|` + InBucket + `)([0-9A-Za-z ._:+=@-]+/)*)?[0-9A-Za-z._:+=@-][0-9A-Za-z ._:+=@-]*$`,
		check: func(value string) *Fault {
			switch {
			case strings.HasSuffix(value, ".sha256"):
				return because("is the checksum of a snapshot", "did you mean "+strings.TrimSuffix(value, ".sha256")+"?")
			case value == InBucket,
				slices.ContainsFunc(strings.Split(value, "/"), func(part string) bool { return part == "." || part == ".." }):
				return wrong()
			}
			return nil
		},
		remedy: "write the name of a file in lifecycle.snapshots.folder, an absolute path, or " + InBucket + " and the key of an object",
	},
}

// official are system extensions that Talos's makers publish and that make sense on a VM. The list is not complete and
// need not be: it is there to recognise what was misspelt, which otherwise shows when the image factory fails.
var official = []string{
	"amd-ucode", "amdgpu", "binfmt-misc", "btrfs", "cloudflared", "crun", "drbd", "ecr-credential-provider", "fuse3", "glibc",
	"gvisor", "gvisor-debug", "hailort", "i915", "intel-ucode", "iscsi-tools", "kata-containers", "lldpd", "mdadm", "nebula", "netbird",
	"newt", "nfs-utils", "nfsd", "nfsrahead", "nonfree-kmod-nvidia-lts", "nonfree-kmod-nvidia-production", "nut-client",
	"nvidia-container-toolkit-lts", "nvidia-container-toolkit-production", "nvidia-open-gpu-kernel-modules-lts",
	"nvidia-open-gpu-kernel-modules-production", "nvme-cli", "qemu-guest-agent", "spin", "stargz-snapshotter", "tailscale",
	"thunderbolt", "uinput", "usb-audio-drivers", "usb-modem-drivers", "util-linux-tools", "vmtoolsd-guest-agent", "wasmedge",
	"xen-guest-agent", "youki", "zerotier", "zfs",
}

const officialOwner = "siderolabs"

// misspelt returns the official extension that differs from the one given in a letter or two, or "". The shortest names are
// left out: too much else differs from them in two letters.
func misspelt(extension string) string {
	owner, name, _ := strings.Cut(extension, "/")
	known := slices.Contains(official, name)
	if meant := Nearest(owner, []string{officialOwner}, 2); meant == "" || owner == officialOwner && known {
		return ""
	}
	if !known {
		name = Nearest(name, slices.DeleteFunc(slices.Clone(official), func(one string) bool { return len(one) <= 4 }), 2)
	}
	if name == "" {
		return ""
	}
	return officialOwner + "/" + name
}

// fixExtension adds the owner, removes a registry and tag, and finds what was misspelt.
func fixExtension(value string) []string {
	bare := strings.ToLower(strings.TrimPrefix(value, "ghcr.io/"))
	bare, _ = cutAny(bare, ":@")
	if !strings.Contains(bare, "/") {
		bare = officialOwner + "/" + bare
	}
	return []string{misspelt(bare), bare}
}
