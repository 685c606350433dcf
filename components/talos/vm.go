package talos

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/download"
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
)

// vm creates a node's VM and starts it. The VM boots the image from its CD drive, because its disk is empty. It has the address
// from the cloud-init drive, and waits in maintenance mode for its configuration.
//
// A control plane's VM is protected: neither an up nor a destroy deletes or replaces it, unless the stack file declares another generation
// of it. To delete it, or to replace it by hand, remove the protection first, from this VM (pulumi state unprotect URN) or from the whole
// stack (pulumi state unprotect --all), and then run up or destroy. The next up protects the VMs that it keeps again.
func (b *builder) vm(node cluster.Machine, image *download.File, after []pulumi.Resource) (*vm.VirtualMachine, error) {
	hooks, err := b.vmHooks(node)
	if err != nil {
		return nil, err
	}
	return vm.NewVirtualMachine(b.ctx, b.name+"-"+node.Name+"-vm", b.vmArgs(node, image), b.proxmox(
		pulumi.Protect(b.protects(node)),
		pulumi.ReplacementTrigger(pulumi.Int(node.Generation)),
		pulumi.DeleteBeforeReplace(true), // the old VM occupies the VM id, the MAC and the IP address
		pulumi.IgnoreChanges(append(ignoredDiskProperties(node), ignoredProperties...)),
		pulumi.DependsOn(after),
		hooks,
	))
}

func (b *builder) vmArgs(node cluster.Machine, image *download.File) *vm.VirtualMachineArgs {
	return &vm.VirtualMachineArgs{
		Name:        pulumi.String(node.Name),
		NodeName:    pulumi.String(node.Host),
		VmId:        pulumi.Int(node.VMID),
		Description: pulumi.String(b.description(node)),
		Tags:        pulumi.ToStringArray(b.tags(node)),
		Migrate:     pulumi.Bool(true), // with another NodeName; otherwise the VM would be deleted and created anew
		OnBoot:      pulumi.Bool(true),
		Started:     pulumi.Bool(true),

		Bios:            pulumi.String("ovmf"),
		Machine:         pulumi.String("q35"),
		OperatingSystem: vm.VirtualMachineOperatingSystemArgs{Type: pulumi.String("l26")},
		Cpu:             vm.VirtualMachineCpuArgs{Cores: pulumi.Int(node.Cores), Type: pulumi.String("host")},
		Memory:          vm.VirtualMachineMemoryArgs{Dedicated: pulumi.Int(node.Memory.MiB())},
		ScsiHardware:    pulumi.String("virtio-scsi-single"),
		SerialDevices:   vm.VirtualMachineSerialDeviceArray{vm.VirtualMachineSerialDeviceArgs{Device: pulumi.String("socket")}},
		EfiDisk:         efiDisk(node),
		TpmState:        b.tpm(node),
		Disks:           disks(node),
		Cdrom:           cdrom(image),
		// An empty disk does not boot, so the first boot is from the CD and every later boot from the disk.
		BootOrders: pulumi.ToStringArray([]string{"scsi0", cdDrive}),
		// With any property of this block, the provider makes a UUID for each VM that it creates, and stores it.
		Smbios: vm.VirtualMachineSmbiosArgs{Family: pulumi.String("Slipway")},

		NetworkDevices: vm.VirtualMachineNetworkDeviceArray{networkDevice(node)},
		Initialization: b.initialization(node),
		Agent:          b.agent(),

		// The disk is deleted with the machine, so a clean shutdown keeps no data. It would only wait for Kubernetes to drain.
		StopOnDestroy:     pulumi.Bool(true),
		TimeoutCreate:     pulumi.Int(900),
		TimeoutStartVm:    pulumi.Int(300),
		TimeoutStopVm:     pulumi.Int(300),
		TimeoutShutdownVm: pulumi.Int(300),
		TimeoutReboot:     pulumi.Int(600),
	}
}

func efiDisk(node cluster.Machine) vm.VirtualMachineEfiDiskArgs {
	return vm.VirtualMachineEfiDiskArgs{
		DatastoreId: pulumi.String(node.Datastore),
		FileFormat:  pulumi.String("raw"),
		Type:        pulumi.String("4m"),
	}
}

// cdrom returns the drive with the image. All three properties are set: the provider has a default for the whole block, which shows as
// a change on every run.
func cdrom(image *download.File) vm.VirtualMachineCdromArgs {
	return vm.VirtualMachineCdromArgs{
		Enabled:   pulumi.Bool(true),
		FileId:    image.ID().ToStringOutput(),
		Interface: pulumi.String(cdDrive),
	}
}

// initialization returns the cloud-init drive, from which a machine without a configuration takes its address.
func (b *builder) initialization(node cluster.Machine) vm.VirtualMachineInitializationArgs {
	return vm.VirtualMachineInitializationArgs{
		DatastoreId: pulumi.String(node.Datastore),
		Interface:   pulumi.String("ide2"),
		Dns:         vm.VirtualMachineInitializationDnsArgs{Servers: pulumi.ToStringArray(texts(b.Network.Resolvers()))},
		IpConfigs:   vm.VirtualMachineInitializationIpConfigArray{b.ipConfig(node)},
	}
}

func (b *builder) agent() vm.VirtualMachineAgentArgs {
	return vm.VirtualMachineAgentArgs{
		Enabled: pulumi.Bool(b.Talos.GuestAgent()),
		Timeout: pulumi.String("3m"), // an agent that does not answer is no error: the apply that follows fails if the machine does not run
	}
}

// description returns a VM's description, which names its cluster. A VM that an interrupted run left is recognised by it.
func (b *builder) description(node cluster.Machine) string {
	return fmt.Sprintf("Talos %s of cluster %s, managed by Slipway", node.Role, b.Identity.Name)
}

func networkDevice(node cluster.Machine) vm.VirtualMachineNetworkDeviceArgs {
	device := vm.VirtualMachineNetworkDeviceArgs{
		Bridge:     pulumi.String(node.Bridge),
		Model:      pulumi.String("virtio"),
		MacAddress: pulumi.String(string(node.MAC)),
	}
	if node.VLAN != 0 {
		device.VlanId = pulumi.Int(node.VLAN)
	}
	return device
}

// ipConfig returns the machine's address for the time before it has its configuration, which sets the same address.
func (b *builder) ipConfig(node cluster.Machine) vm.VirtualMachineInitializationIpConfigArgs {
	config := vm.VirtualMachineInitializationIpConfigArgs{
		Ipv4: vm.VirtualMachineInitializationIpConfigIpv4Args{
			Address: pulumi.String(netip.PrefixFrom(node.Address, b.Network.NodeCIDR.Bits()).String()),
			Gateway: pulumi.String(b.Network.Gateway.String()),
		},
	}
	if six := b.Network.IPv6; six != nil {
		config.Ipv6 = vm.VirtualMachineInitializationIpConfigIpv6Args{
			Address: pulumi.String(netip.PrefixFrom(node.Address6, six.NodeCIDR.Bits()).String()),
			Gateway: pulumi.String(six.Gateway.String()),
		}
	}
	return config
}

// tags returns a VM's tags, sorted as Proxmox sorts them, without repetition: any other order would show as a change.
func (b *builder) tags(node cluster.Machine) []string {
	tags := slices.Concat([]string{"slipway", "talos", b.Identity.Name, string(node.Role)}, node.Tags)
	slices.Sort(tags)
	return slices.Compact(tags)
}

func texts[T fmt.Stringer](values []T) []string {
	list := make([]string, len(values))
	for i, value := range values {
		list[i] = value.String()
	}
	return list
}
