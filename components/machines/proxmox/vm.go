package proxmox

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/download"
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/siderolabs/gen/xslices"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/internal/machines"
	"github.com/slipway-platform/slipway/components/machines/proxmox/reclaim"
)

// maker makes VMs.
type maker struct {
	images

	turns machines.Turns
	left  pulumi.Resource // removes VMs that are in no state, when the cluster is destroyed; comes before every VM
}

// Maker returns what makes VMs that boot from the images.
func (i images) Maker(ctx *pulumi.Context, turns machines.Turns, after []pulumi.Resource) (machines.Maker, error) {
	left, err := i.leftoverVMs(ctx, slices.Clone(after))
	return maker{images: i, turns: turns, left: left}, err
}

// Make creates a node's VM and starts it. The VM boots the image from its CD drive, because its disk is empty. It has the address
// from the cloud-init drive, and waits in maintenance mode for its configuration.
//
// A control plane's VM is protected: neither `up` nor `destroy` deletes or replaces it, unless the stack file declares another generation
// of it. To delete it, or to replace it by hand, remove the protection first, from this VM (pulumi state unprotect URN) or from the whole
// stack (pulumi state unprotect --all), and then run up or destroy. The next run protects the remaining VMs again.
func (m maker) Make(ctx *pulumi.Context, order machines.Order) (machines.Machine, error) {
	node := order.Node
	name := m.NameOf(node.Name, "vm")
	created := &atomic.Bool{}
	hooks, err := m.hooks(ctx, name, node, created)
	if err != nil {
		return machines.Machine{}, err
	}
	made, err := vm.NewVirtualMachine(ctx, name, vmArgs(m.Cluster, node, m.files[imageOf(node)]), m.child(
		pulumi.Protect(order.Protect),
		pulumi.ReplacementTrigger(pulumi.Int(node.Generation)),
		pulumi.DeleteBeforeReplace(true), // the old VM occupies the VM id, the MAC and the IP address
		pulumi.IgnoreChanges(append(ignoredDiskProperties(node), ignoredProperties...)),
		pulumi.DependsOn(append(slices.Clone(order.DependsOn), m.left)),
		hooks,
	))
	if err != nil {
		return machines.Machine{}, err
	}
	api, declared := api(m.Cluster), declaredVM(m.Cluster, node)
	return machines.Machine{
		Node: node, Resource: made, Incarnation: incarnation(made), Hardware: hardwareOf(m.Cluster), New: created.Load,
		Reset: func(ctx context.Context) error { return reclaim.Reset(ctx, api, declared) },
	}, nil
}

// hardwareOf names what all machines of a cluster have beside what each declares; "" for the defaults, of which no state has a name.
func hardwareOf(c *cluster.Cluster) string {
	if c.Proxmox.SCSIController == cluster.SCSISingle {
		return ""
	}
	return string(c.Proxmox.SCSIController)
}

// incarnation returns the UUID that the provider gives a VM when it creates it. It is "" for a VM from before the provider stored UUIDs.
func incarnation(of *vm.VirtualMachine) pulumi.StringOutput {
	return of.Smbios.ApplyT(func(smbios *vm.VirtualMachineSmbios) string {
		if smbios == nil || smbios.Uuid == nil {
			return ""
		}
		return *smbios.Uuid
	}).(pulumi.StringOutput)
}

func vmArgs(c *cluster.Cluster, node cluster.Machine, image *download.File) *vm.VirtualMachineArgs {
	return &vm.VirtualMachineArgs{
		Name:        pulumi.String(node.Name),
		NodeName:    pulumi.String(node.Host),
		VmId:        pulumi.Int(node.VMID),
		Description: pulumi.String(description(c, node)),
		Tags:        pulumi.ToStringArray(tags(c, node)),
		Migrate:     pulumi.Bool(true), // with another NodeName; otherwise the VM would be deleted and created anew
		OnBoot:      pulumi.Bool(true),
		Started:     pulumi.Bool(true),

		Bios:            pulumi.String("ovmf"),
		Machine:         pulumi.String("q35"),
		OperatingSystem: vm.VirtualMachineOperatingSystemArgs{Type: pulumi.String("l26")},
		Cpu:             vm.VirtualMachineCpuArgs{Cores: pulumi.Int(node.Cores), Type: pulumi.String("host")},
		Memory:          vm.VirtualMachineMemoryArgs{Dedicated: pulumi.Int(node.Memory.MiB())},
		ScsiHardware:    pulumi.String(c.Proxmox.SCSIController),
		SerialDevices:   vm.VirtualMachineSerialDeviceArray{vm.VirtualMachineSerialDeviceArgs{Device: pulumi.String("socket")}},
		EfiDisk:         efiDisk(node),
		TpmState:        tpm(node),
		Disks:           disks(c, node),
		Cdrom:           cdrom(image),
		// An empty disk does not boot, so the first boot is from the CD and every later boot from the disk.
		BootOrders: pulumi.ToStringArray([]string{"scsi0", cdDrive}),
		// With any property of this block, the provider makes and stores a UUID for each VM that it creates.
		Smbios: vm.VirtualMachineSmbiosArgs{Family: pulumi.String("Slipway")},

		NetworkDevices: vm.VirtualMachineNetworkDeviceArray{networkDevice(node)},
		Initialization: initialization(c, node),
		Agent:          agent(c),

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

// cdrom returns the drive with the image. Both properties are set: the provider has a default for the whole block, which shows as a change
// on every run. The property enabled is deprecated: the provider warns of it, and forgets its value. Only the VM of a node that is left
// out may have no image: what is declared of it counts for nothing, but the paths that are ignored must exist.
func cdrom(image *download.File) vm.VirtualMachineCdromArgs {
	drive := vm.VirtualMachineCdromArgs{Interface: pulumi.String(cdDrive)}
	if image != nil {
		drive.FileId = image.ID().ToStringOutput()
	}
	return drive
}

// initialization returns the cloud-init drive, from which a machine without a configuration takes its address.
func initialization(c *cluster.Cluster, node cluster.Machine) vm.VirtualMachineInitializationArgs {
	return vm.VirtualMachineInitializationArgs{
		DatastoreId: pulumi.String(node.Datastore),
		Interface:   pulumi.String("ide2"),
		Dns:         vm.VirtualMachineInitializationDnsArgs{Servers: pulumi.ToStringArray(xslices.Map(c.Network.Resolvers(), netip.Addr.String))},
		IpConfigs:   vm.VirtualMachineInitializationIpConfigArray{ipConfig(c, node)},
	}
}

func agent(c *cluster.Cluster) vm.VirtualMachineAgentArgs {
	return vm.VirtualMachineAgentArgs{
		Enabled: pulumi.Bool(c.Talos.GuestAgent()),
		Timeout: pulumi.String("3m"), // an agent that does not answer is no error: the apply that follows fails if the machine does not run
	}
}

// description returns a VM's description, which names its cluster. A VM that an interrupted run left is recognised by it.
func description(c *cluster.Cluster, node cluster.Machine) string {
	return fmt.Sprintf("Talos %s of cluster %s, managed by Slipway", node.Role, c.Identity.Name)
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
func ipConfig(c *cluster.Cluster, node cluster.Machine) vm.VirtualMachineInitializationIpConfigArgs {
	config := vm.VirtualMachineInitializationIpConfigArgs{
		Ipv4: vm.VirtualMachineInitializationIpConfigIpv4Args{
			Address: pulumi.String(netip.PrefixFrom(node.Address, c.Network.NodeCIDR.Bits()).String()),
			Gateway: pulumi.String(c.Network.Gateway.String()),
		},
	}
	if six := c.Network.IPv6; six != nil {
		config.Ipv6 = vm.VirtualMachineInitializationIpConfigIpv6Args{
			Address: pulumi.String(netip.PrefixFrom(node.Address6, six.NodeCIDR.Bits()).String()),
			Gateway: pulumi.String(six.Gateway.String()),
		}
	}
	return config
}

// tags returns a VM's tags, sorted as Proxmox sorts them, without repetition: any other order would show as a change.
func tags(c *cluster.Cluster, node cluster.Machine) []string {
	tags := slices.Concat([]string{"slipway", "talos", c.Identity.Name, string(node.Role)}, node.Tags)
	if away(node) {
		tags = append(tags, awayTag)
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}
