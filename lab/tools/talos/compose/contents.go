package main

// This file is the list of what Talos is composed of, besides the programs that are built from Go modules. Debian's package names are
// those of Debian 12, except for the kernel.

// kernelPackage depends on the package of the newest kernel for virtual machines, and kernelSuite is the suite of Debian that it is from:
// Talos 1.14 needs kernel 6.15 or newer, for detached mounts.
const (
	kernelPackage = "linux-image-cloud-amd64"
	kernelSuite   = "trixie-backports"
)

// debianKeys are the keys that Debian signs its suites with.
const debianKeys = "/usr/share/keyrings/debian-archive-keyring.gpg"

// stub is the program that a UKI begins with: it boots the kernel that follows it.
const stub = "/usr/lib/systemd/boot/efi/linuxx64.efi.stub"

// systemdBoot is the boot loader that Talos's installer installs on a machine with UEFI.
const systemdBoot = "/usr/lib/systemd/boot/efi/systemd-bootx64.efi"

// cmdline is the kernel's command line of an installed machine.
//   - Talos refuses to boot unless pti=on is given, and the kernel takes the last: without page table isolation, system calls are far
//     cheaper where the processor is emulated.
//   - The kubelet wants a kernel that panics on an oops. Talos's own kernel is built so.
//   - QEMU's emulation of several processors can run code that the kernel has just replaced, which panics. The machine then boots again.
const cmdline = "talos.platform=nocloud console=ttyS0 net.ifnames=0 init_on_alloc=0 slab_nomerge= pti=on consoleblank=0 pti=off " +
	"printk.devkmsg=on oops=panic panic=5 mitigations=off talos.dashboard.disabled=1 random.trust_cpu=1"

// isoCmdline is that of the ISO. As in the Image Factory's, a machine that is installed already does not boot from the ISO.
const isoCmdline = cmdline + " talos.halt_if_installed=1"

// rootPackages are installed in the root file system, with what they depend on.
var rootPackages = []string{
	"udev", "kmod", "runc", "cryptsetup-bin", "lvm2", "dmsetup", "xfsprogs", "e2fsprogs", "dosfstools", "iptables", "nftables",
	"containernetworking-plugins", "libseccomp2", "mount", "util-linux", "ethtool", "conntrack", "ipset", "socat", "mdadm",
}

// rootLeftOut are the packages of these that nothing in the root file system runs.
var rootLeftOut = []string{
	"python3*", "libpython3*", "libicu72", "perl*", "debconf*", "dpkg", "adduser", "passwd", "libsqlite3*", "media-types", "netbase",
	"lsb-base", "sysvinit-utils", "libdb5.3", "libpam-modules*", "gcc-12-base", "readline-common", "libnsl*", "libsemanage*",
}

// installerPackages are installed in the image of the installer, with what they depend on.
var installerPackages = []string{"grub-pc-bin", "grub2-common", "mount", "util-linux", "xfsprogs", "dosfstools", "e2fsprogs", "mtools"}

// installerLeftOut are the packages of these that the installer does not run.
var installerLeftOut = append([]string{"bash", "coreutils", "grep", "sed", "tar", "install-info", "sensible-utils", "ucf"}, rootLeftOut...)

// libcPackages are the libraries of Go programs that are built with cgo.
var libcPackages = []string{"libc6", "libgcc-s1"}

// mountPackages is mount, which the kubelet runs, with its libraries. They are among those of the root file system.
var mountPackages = []string{
	"mount", "util-linux", "libmount1", "libblkid1", "libselinux1", "libpcre2-8-0", "libsmartcols1", "libuuid1", "libtinfo6",
	"libcap-ng0", "libcrypt1", "libpam0g", "libudev1", "libsystemd0", "libaudit1", "libcap2", "libgcrypt20", "libgpg-error0", "liblz4-1",
	"liblzma5", "libzstd1",
}

// unused are files of packages that no program here reads.
var unused = []string{
	"./usr/share/doc", "./usr/share/man", "./usr/share/locale", "./usr/share/info", "./usr/share/lintian", "./usr/share/bash-completion",
}

// rootRemoved are further files of packages that do not belong into the root file system, because Talos has its own or none.
var rootRemoved = []string{
	"usr/lib/x86_64-linux-gnu/gconv", "usr/lib/x86_64-linux-gnu/engines-3", "usr/lib/x86_64-linux-gnu/krb5",
	"usr/lib/udev/hwdb.d", // udev takes 12 s to compile it
	"usr/lib/systemd/system", "usr/lib/tmpfiles.d", "usr/lib/sysusers.d", "usr/lib/modprobe.d",
	"usr/share/initramfs-tools", "usr/share/bug", "usr/share/zsh", "usr/share/perl5", "usr/share/polkit-1", "usr/share/apport",
	"usr/share/ca-certificates",
}

// modulesRemoved are the kernel's modules that no machine here needs, below kernel.
var modulesRemoved = []string{
	"sound", "drivers/gpu", "drivers/media", "drivers/infiniband", "drivers/net/wireless", "drivers/net/ethernet", "drivers/scsi/qla2xxx",
	"drivers/scsi/lpfc", "drivers/hwmon", "drivers/video", "drivers/input", "fs/btrfs", "fs/ocfs2", "fs/ceph", "fs/nfs", "fs/nfsd",
	"fs/cifs", "fs/smb", "fs/f2fs", "fs/jfs", "fs/reiserfs", "fs/afs", "fs/dlm", "fs/gfs2", "fs/orangefs", "fs/ubifs", "fs/jffs2",
	"fs/hfs", "fs/hfsplus", "fs/udf",
}

// bootModules are loaded before Talos's init, because Talos's own kernel has them built in. Debian's kernel for virtual machines has no
// AHCI and no watchdog: disks and CD drives are on virtio or on PIIX's IDE.
var bootModules = []string{
	"squashfs", "loop", "overlay", "virtio_pci", "virtio_blk", "virtio_scsi", "virtio_net", "sr_mod", "sd_mod", "ata_piix",
	"isofs", "xfs", "vfat", "nls_cp437", "nls_ascii", "nls_utf8", "ext4", "dm_mod", "dm_crypt", "veth", "bridge", "br_netfilter", "vxlan",
	"tun", "nf_tables", "nft_compat", "nft_chain_nat", "nf_nat", "nf_conntrack", "ip_tables", "iptable_nat", "iptable_filter",
	"iptable_mangle", "ip6_tables", "ip6table_filter", "ip6table_mangle", "ip6table_nat", "xt_conntrack", "xt_comment", "xt_mark",
	"xt_MASQUERADE", "xt_addrtype", "xt_nat", "ip_set", "dummy", "wireguard", "nft_ct", "nft_limit", "nft_reject_inet", "nft_masq",
	"nft_fib_inet", "nft_log", "virtio_rng", "configfs", "efivarfs", "fuse", "8021q", "bonding", "sch_fq", "cls_bpf",
	"act_bpf", "sch_ingress",
}

// networkPlugins are the CNI plugins that Talos has itself. The others come from the CNI.
var networkPlugins = []string{"bridge", "host-local", "loopback", "portmap"}

// rootFolders are the folders that Talos expects to exist.
var rootFolders = []string{
	"boot/EFI", "dev", "proc", "sys", "run", "tmp", "root", "home", "mnt", "system", "opt/containerd/bin", "opt/containerd/lib",
	"opt/cni/bin", ".extra", "var", "etc/iscsi", "etc/nvme", "etc/cri/conf.d/hosts", "etc/kubernetes/manifests", "etc/cni/net.d",
	"etc/ssl/certs", "etc/lvm", "etc/udev", "etc/containerd", "etc/selinux/targeted/contexts/files", "usr/etc", "usr/lib/firmware",
	"usr/lib/udev/hwdb.d", "usr/lib/udev/rules.d", "usr/lib/systemd/network", "usr/libexec/kubernetes",
	"usr/local/lib/kubelet/credentialproviders", "usr/local/share", "usr/share/lab", "usr/share/spdx", "usr/share/zoneinfo/Etc",
}

// rootSources are files of Talos's sources: path in the root file system, and path in the folder hack.
var rootSources = map[string]string{
	"usr/share/zoneinfo/Etc/UTC":              "zoneinfo/Etc/UTC",
	"etc/nfsmount.conf":                       "nfsmount.conf",
	"etc/containerd/config.toml":              "containerd.toml",
	"etc/cri/containerd.toml":                 "cri-containerd.toml",
	"etc/cri/conf.d/00-base.part":             "cri-plugin.part",
	"usr/lib/systemd/network/99-default.link": "udevd/99-default.link",
	"etc/lvm/lvm.conf":                        "lvm.conf",
}

// rootEmpty are the files over which Talos mounts what it writes.
var rootEmpty = []string{
	"etc/extensions.yaml", "etc/resolv.conf", "etc/hosts", "etc/machine-id", "etc/cri/conf.d/cri.toml",
	"etc/cri/conf.d/01-registries.part", "etc/cri/conf.d/20-customization.part", "etc/cri/conf.d/base-spec.json",
	"etc/ssl/certs/ca-certificates.crt", "etc/selinux/targeted/contexts/files/file_contexts", "etc/iscsi/initiatorname.iscsi",
	"etc/nvme/hostid", "etc/nvme/hostnqn", "usr/lib/udev/hwdb.bin",
}

// rootLinks are links in the root file system, with their targets.
var rootLinks = map[string]string{
	"etc/localtime":                   "/usr/share/zoneinfo/Etc/UTC",
	"etc/ssl/certs/ca-certificates":   "ca-certificates.crt",
	"etc/pki":                         "/etc/ssl",
	"etc/ca-certificates":             "/etc/ssl",
	"usr/share/ca-certificates":       "/etc/ssl",
	"usr/local/share/ca-certificates": "/etc/ssl",
	"usr/etc/udev":                    "../lib/udev", // where Debian's udev has its data base of hardware
	"usr/bin/systemd-udevd":           "udevadm",
	"usr/bin/sandboxd":                "init", // since Talos 1.14
	"usr/bin/iptables":                "xtables-nft-multi", "usr/bin/ip6tables": "xtables-nft-multi",
	"usr/bin/iptables-save": "xtables-nft-multi", "usr/bin/ip6tables-save": "xtables-nft-multi",
	"usr/bin/iptables-restore": "xtables-nft-multi", "usr/bin/ip6tables-restore": "xtables-nft-multi",
}

// rootText are small files in the root file system.
var rootText = map[string]string{
	// Talos 1.13 formats by the settings for its own kernel. Debian's mkfs.xfs refuses an option of its own files of that kind.
	"usr/share/xfsprogs/mkfs/lts_6.18.conf": "# the defaults of this mkfs.xfs\n",
	"etc/passwd":                            "root:x:0:0:root:/root:/sbin/nologin\n",
	"etc/group": "root:x:0:\ntty:x:5:\ndisk:x:6:\nkmem:x:15:\nlp:x:7:\ndialout:x:20:\ncdrom:x:24:\nfloppy:x:25:\ntape:x:26:\naudio:x:29:\n" +
		"video:x:44:\ninput:x:101:\nsgx:x:102:\nkvm:x:103:\nrender:x:104:\n",
}
