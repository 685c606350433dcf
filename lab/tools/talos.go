package tools

import (
	"slices"
	"strings"
	"time"
)

const (
	talos          = "github.com/siderolabs/talos"
	talosMachinery = talos + "/pkg/machinery"
	containerd     = "github.com/containerd/containerd/v2"
)

// talosHost maps what this computer needs to compose and run Talos to its Debian packages.
var talosHost = map[string]string{
	"apt-get": "apt", "dpkg-deb": "dpkg", "tar": "tar", "xz": "xz-utils",
	"patch": "patch", "objcopy": "binutils", "cpio": "cpio", "depmod": "kmod",
	"mksquashfs": "squashfs-tools", "xorriso": "xorriso", "mformat": "mtools", "mcopy": "mtools",
	"/usr/lib/systemd/boot/efi/linuxx64.efi.stub": "systemd-boot-efi",
	"qemu-system-x86_64":                          "qemu-system-x86", "qemu-img": "qemu-utils", "/usr/share/OVMF/OVMF_CODE_4M.fd": "ovmf",
}

// talosSystem declares a real Talos: what a machine boots, and the images that it pulls. Its data folder is described in docs/lab.md.
func talosSystem(machined Tool, kubernetes string) Tool {
	return Tool{
		Name: "talos-" + strings.TrimPrefix(machined.Name, "machined-"), Version: machined.Version,
		Folder: "talos", Package: "./compose", Binary: "compose",
		Packages: []string{"./preinit", "./pause"}, Static: true,
		Module: "golang.org/x/sys", ModuleVersion: "v0.48.0",
		Compose: []string{"-talos", machined.Version, "-kubernetes", kubernetes},
		Parts: map[string]Tool{
			"machined": machined, "containerd": containerdProgram("2.1.6"), "kubelet": kubeletProgram(kubernetes),
			"kube": kubernetesOf(kubernetes), "etcd": find(Table, "etcd"),
		},
		Host: talosHost,
		CPU:  time.Minute,
	}
}

// The releases of Talos that are built: the newest of each minor release whose modules can be had.
var (
	talos112 = talosSources{
		version: "1.12.6", sum: "h1:wHRZSkPC+jVDPXHPujREP/KjU421vL5AwnyhnLvVElI=",
		machinery: "h1:p8XG6i82Y5MTLeaPDtFv2TnE7UY9tPLbbRI8cwJdRlw=",
	}
	talos113 = talosSources{
		version: "1.13.9", sum: "h1:rTVcPmnU2nx3JewD4UnhHL9j1ZaOPHN0/b02GwLysZA=",
		machinery: "h1:4Qch4CVfhT3C48PfiIFXYa1LAhSWA6o7NmrEO2bsLlg=", modFile: "1.13.mod",
	}
	talos114 = talosSources{
		version: "1.14.1", sum: "h1:hBTn0gwcy0WK6gHsijCtHZCED1BtzA3Wh3w41NL6s3s=",
		machinery: "h1:dh2PkMNUkndQWSY+iUy9d9rGDKpAD9TuHylzVhY544Y=", modFile: "1.14.mod",
		patches: []string{"patches/no-hwdb.patch"},
	}
)

// talosSources are a release of Talos, and the lines of its two modules in go.sum.
type talosSources struct {
	version        string
	sum, machinery string
	modFile        string   // in the folder machined; "" means go.mod
	patches        []string // beside that for the lab's CA
}

// machined declares Talos's own programs: machined, which is all of a node's services, the init of the initramfs, and the installer.
func machined(of talosSources) Tool {
	version := of.version
	return Tool{
		Name: "machined-" + minorOf(version), Version: version, Folder: "machined", ModFile: of.modFile,
		Package: talos + "/internal/app/machined", Binary: "machined",
		Packages: []string{talos + "/internal/app/init", talos + "/cmd/installer"},
		Module:   talos, ModuleVersion: "v" + version,
		Tags: []string{"tcell_minimal", "grpcnotrace"}, Static: true, LDFlags: []string{"-s", "-w"},
		Overlays: of.overlays(),
		Data:     []Copy{{Module: talos, From: "hack", To: "hack"}, {Module: talosMachinery, From: "version/os-release", To: "os-release"}},
		CPU:      7 * time.Minute,
	}
}

// rebuilt declares the same sources of Talos under another version and with more patches: a release that a machine is upgraded to.
func rebuilt(of Tool, name, version string, patches ...string) Tool {
	of.Name, of.Version = of.Name+"-"+name, version
	of.overlay(talosMachinery).Files = map[string]string{"gendata/data/tag": "v" + version}
	system := of.overlay(talos)
	system.Patches = slices.Concat(system.Patches, patches)
	of.CPU = time.Minute
	return of
}

// overlays are the sources of Talos, which the lab changes for Debian's programs and for its own CA.
func (of talosSources) overlays() []Overlay {
	return []Overlay{
		{
			Module: talos, Version: "v" + of.version, Sum: of.sum, To: "talos",
			Patches: append([]string{"patches/trusted-ca.patch"}, of.patches...),
		},
		{Module: talosMachinery, Version: "v" + of.version, Sum: of.machinery, To: "machinery"},
	}
}

// containerdProgram declares containerd and its shim. It has a module of its own, because Talos requires a fork of its sources.
func containerdProgram(version string) Tool {
	return Tool{
		Name: "containerd", Version: version, Folder: "containerd", Package: containerd + "/cmd/containerd",
		Packages: []string{containerd + "/cmd/containerd-shim-runc-v2"},
		Module:   containerd, ModuleVersion: "v" + version,
		Tags: []string{"no_btrfs", "no_zfs", "no_devmapper", "no_aufs"}, Static: true,
		LDFlags: []string{"-s", "-w", "-X", containerd + "/version.Version=v" + version},
		CPU:     100 * time.Second,
	}
}

// kubeletProgram declares the kubelet of a version of Kubernetes. It shares a module with kube where that has what the kubelet requires.
func kubeletProgram(version string) Tool {
	folder := "kube"
	if version == KubernetesVersion {
		folder = "kubelet"
	}
	return Tool{
		Name: "kubelet-" + minorOf(version), Version: version, Folder: folder, ModFile: kubernetesModFile(version),
		Package: "k8s.io/kubernetes/cmd/kubelet", Binary: "kubelet",
		Module: "k8s.io/kubernetes", ModuleVersion: "v" + version,
		LDFlags: kubernetesFlags(version),
		CPU:     5 * time.Minute,
	}
}

// kubernetesOf is the tool with the control plane of a version of Kubernetes.
func kubernetesOf(version string) Tool {
	if version == KubernetesVersion {
		return find(Table, "kube")
	}
	return minor(version)
}

// find returns the tool of a list with that name, which is there.
func find(list []Tool, name string) Tool {
	for _, t := range list {
		if t.Name == name {
			return t
		}
	}
	panic("tools: no " + name)
}
