package cluster

import (
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster/syntax"
)

// Talos is the operating system of the machines.
type Talos struct {
	// Version of Talos Linux. A later version upgrades the running nodes, one at a time.
	//
	// renovate: datasource=github-releases depName=siderolabs/talos
	Version string `json:"version" form:"talos-release" default:"v1.14.6"`
	// The configuration contract: for which minor release of Talos the machine configurations are written. It does not follow `version`, so
	// that an upgrade changes no configuration. Later releases of Talos take what was written for earlier ones. Raise it in a run of its own,
	// once all machines run that release.
	Contract TalosContract `json:"contract" default:"v1.12"`
	// Image factory that the boot image and the installer come from.
	Factory string `json:"factory" form:"https-host-url" default:"https://factory.talos.dev" example:"https://factory.example.com"`
	// Official system extensions. With `siderolabs/qemu-guest-agent`, the VMs' agent channel is switched on as well. The Proxmox provider
	// then asks the agent, for which the token needs the privilege `VM.GuestAgent.Audit`, and before Proxmox VE 9 `VM.Monitor`.
	Extensions []string `json:"extensions" form:"system-extension" example:"[siderolabs/qemu-guest-agent]"`
	// The extension siderolabs/lldpd.
	LLDPD LLDPD `json:"lldpd"`
	// Disk that Talos is installed to. It is the first disk on the VMs' SCSI bus.
	InstallDisk string `json:"installDisk" form:"device" default:"/dev/sda" example:"/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi0"`
	// Encryption of Talos's partitions STATE and EPHEMERAL, and of data disks of use `volume`. The key is derived from the
	// machine's id (`nodeID`) or sealed in a virtual TPM (`tpm`, with SecureBoot). It takes effect when a machine is installed. To change it
	// in a running cluster, replace one machine after the other, and declare the former value in `nodePools[].nodes[].diskEncryption` of
	// those that still have it.
	DiskEncryption DiskEncryption `json:"diskEncryption" default:"none" example:"nodeID"`
	// The kubelet of every node.
	Kubelet Kubelet `json:"kubelet"`
	// Kernel parameters of every machine. The gate lists those that the kernel does not take.
	Sysctls map[string]string `json:"sysctls" keys:"sysctl" example:"{net.core.somaxconn: \"65535\"}"`
	// Mirrors of image registries, tried in order, by the registry's host; `*` means every registry without an entry. With Spegel, pods ask
	// other nodes before; mirrors of a registry with a port then serve Talos's own images only. See [without the
	// internet](air-gap.md#without-the-internet).
	RegistryMirrors map[string][]string `json:"registryMirrors" keys:"registry" form:"http-url" items:"1-" example:"{docker.io: [\"https://mirror.example.com\"]}"`
	// The user's patches to machine configurations. They are applied last, and must not change values that Slipway sets.
	Patches Patches `json:"patches"`
}

// TalosContract is a configuration contract of Talos: a minor release, such as v1.12.
type TalosContract string

// Choices lists the contracts whose documents the Talos plugin can parse, which has the machinery of the last one.
func (TalosContract) Choices() []string { return []string{"v1.12"} }

// FirstDisk is the default of installDisk: the device of the first SCSI disk of a VM with one disk.
const FirstDisk = syntax.FirstDisk

// LLDPD is the configuration of the extension siderolabs/lldpd.
type LLDPD struct {
	// Contents of the file `lldpd.conf`. It requires the extension `siderolabs/lldpd`.
	Config Text `json:"config" follows:"the extension's: configure lldp portidsubtype ifname" example:"\"configure lldp portidsubtype ifname\\n\""`
}

// Kubelet is the kubelet of every node.
type Kubelet struct {
	// Largest number of pods on a node. A node's IPv4 range, a /24, has addresses for 250 pods beside Cilium's own addresses.
	MaxPods int `json:"maxPods" range:"1-250" default:"110" example:"200"`
	// Flags of every kubelet, without their dashes. Flags that Slipway sets or relies on are refused, as in patches.
	ExtraArgs map[string]string `json:"extraArgs" keys:"kubelet-flag" example:"{v: \"2\"}"`
}

// Patches are strategic merge patches to the machine configuration, applied last, in this order, and a node's own after them.
type Patches struct {
	// Patches to every machine configuration.
	All []Patch `json:"all" example:"[{machine: {kubelet: {extraArgs: {v: \"2\"}}}}]"`
	// Patches to the machine configurations of control planes, after `all`.
	ControlPlanes []Patch `json:"controlPlanes" example:"[{cluster: {etcd: {extraArgs: {snapshot-count: \"20000\"}}}}]"`
	// Patches to the machine configurations of workers, after `all`.
	Workers []Patch `json:"workers" example:"[{machine: {nodeAnnotations: {example.com/rack: \"1\"}}}]"`
}

// DiskEncryption is the source of the key that encrypts Talos's partitions and user volumes. Raw disks are not encrypted.
type DiskEncryption string

// The kinds of disk encryption. A key derived from the machine's UUID (nodeID) protects a disk that is removed from the machine.
// Talos seals a key in a TPM only on a machine with SecureBoot.
const (
	DiskEncryptionNone   DiskEncryption = "none"
	DiskEncryptionNodeID DiskEncryption = "nodeID"
	DiskEncryptionTPM    DiskEncryption = "tpm"
)

// Choices lists the kinds of disk encryption.
func (DiskEncryption) Choices() []string {
	return texts(DiskEncryptionNone, DiskEncryptionNodeID, DiskEncryptionTPM)
}

// Encrypts reports whether Talos encrypts its partitions and user volumes.
func (d DiskEncryption) Encrypts() bool { return d != DiskEncryptionNone }

// SecureBoot reports whether the machine uses SecureBoot and has a TPM.
func (d DiskEncryption) SecureBoot() bool { return d == DiskEncryptionTPM }

// BrokenNetwork is what is wrong with a kernel parameter of which BreaksNetwork reports true.
const BrokenNetwork = "turns off what the network of the pods needs"

// forwarding matches the kernel parameters that turn forwarding on or off for all interfaces, or for those of new pods. Talos
// turns it on, and Cilium routes the pods' packets with it.
var (
	forwarding4 = regexp.MustCompile(`^net\.ipv4\.(ip_forward|conf\.(all|default)\.forwarding)$`)
	forwarding6 = regexp.MustCompile(`^net\.ipv6\.conf\.(all|default)\.forwarding$`)
	withoutIPv6 = regexp.MustCompile(`^net\.ipv6\.conf\.[^.]+\.disable_ipv6$`)
)

// BreaksNetwork reports whether a kernel parameter, its name written with dots, turns off forwarding, or IPv6 in a cluster that
// uses it.
func (c *Cluster) BreaksNetwork(sysctl, value string) bool {
	needed := ""
	switch {
	case forwarding4.MatchString(sysctl), c.Network.IPv6 != nil && forwarding6.MatchString(sysctl):
		needed = "1"
	case c.Network.IPv6 != nil && withoutIPv6.MatchString(sysctl):
		needed = "0"
	}
	return needed != "" && strings.TrimSpace(value) != needed
}

// defaultLLDPD makes lldpd announce the name of the interface.
const defaultLLDPD = "configure lldp portidsubtype ifname\n"

func (t *Talos) derive() {
	if t.LLDPD.Config == "" && slices.Contains(t.Extensions, LLDPDExtension) {
		t.LLDPD.Config = defaultLLDPD
	}
}

func (c clusterCheck) talos() {
	t := c.Talos
	if t.LLDPD.Config != "" && !slices.Contains(t.Extensions, LLDPDExtension) {
		c.Found("talos.lldpd.config", "add "+LLDPDExtension+" to talos.extensions, or remove it",
			"is for an extension that the machines do not have")
	}
	given := map[string]string{}
	for _, key := range sorted(t.Sysctls) {
		path, dotted := EntryPath("talos.sysctls", key), strings.ReplaceAll(key, "/", ".")
		fault := syntax.Line(t.Sysctls[key])
		switch {
		case strings.TrimSpace(t.Sysctls[key]) == "":
			c.Found(path, "give it a value, or remove it", "is empty")
		case fault != nil:
			c.fault(path, fault)
		case given[dotted] != "":
			c.Found(path, "keep one", "is the kernel parameter %s, which is given already", given[dotted])
		case c.BreaksNetwork(dotted, t.Sysctls[key]):
			c.Found(path, "remove it", BrokenNetwork)
		default:
			given[dotted] = key
		}
	}
}
