package talos

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/download"
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/talos/machineconfig"
	"github.com/slipway-platform/slipway/components/talos/reclaim"
)

// vm makes a node's machine and starts it. It boots the image from its CD drive, since its disk is empty, with the address
// that the cloud-init drive gives it, and waits there for its configuration.
func (b *builder) vm(node Node, image *download.File) (*vm.VirtualMachine, error) {
	a := b.args
	leftovers, err := b.reclaim(node)
	if err != nil {
		return nil, err
	}
	return vm.NewVirtualMachine(b.ctx, b.name+"-"+node.Name+"-vm", &vm.VirtualMachineArgs{
		Name:        pulumi.String(node.Name),
		NodeName:    pulumi.String(node.Host),
		VmId:        pulumi.Int(node.VMID),
		Description: pulumi.String(a.description(node)),
		Tags:        pulumi.ToStringArray(a.tags(node)),
		OnBoot:      pulumi.Bool(true),
		Started:     pulumi.Bool(true),

		Bios:            pulumi.String("ovmf"),
		Machine:         pulumi.String("q35"),
		OperatingSystem: vm.VirtualMachineOperatingSystemArgs{Type: pulumi.String("l26")},
		Cpu:             vm.VirtualMachineCpuArgs{Cores: pulumi.Int(node.Cores), Type: pulumi.String("host")},
		Memory:          vm.VirtualMachineMemoryArgs{Dedicated: pulumi.Int(node.MemoryMiB)},
		ScsiHardware:    pulumi.String("virtio-scsi-single"),
		SerialDevices:   vm.VirtualMachineSerialDeviceArray{vm.VirtualMachineSerialDeviceArgs{Device: pulumi.String("socket")}},
		EfiDisk: vm.VirtualMachineEfiDiskArgs{
			DatastoreId: pulumi.String(a.DiskDatastore),
			FileFormat:  pulumi.String("raw"),
			Type:        pulumi.String("4m"),
		},
		Disks: vm.VirtualMachineDiskArray{vm.VirtualMachineDiskArgs{
			DatastoreId: pulumi.String(a.DiskDatastore),
			Interface:   pulumi.String("scsi0"),
			FileFormat:  pulumi.String("raw"),
			Size:        pulumi.Int(node.DiskGiB),
			Iothread:    pulumi.Bool(true),
			Discard:     pulumi.String("on"),
			Ssd:         pulumi.Bool(true),
		}},
		// All three are stated: the provider has a default for the whole block, which shows as a change on every run.
		Cdrom: vm.VirtualMachineCdromArgs{
			Enabled:   pulumi.Bool(true),
			FileId:    image.ID().ToStringOutput(),
			Interface: pulumi.String("ide3"),
		},
		// An empty disk does not boot, so the first boot is from the CD and every later one from the disk.
		BootOrders: pulumi.ToStringArray([]string{"scsi0", "ide3"}),

		NetworkDevices: vm.VirtualMachineNetworkDeviceArray{a.networkDevice(node)},
		Initialization: vm.VirtualMachineInitializationArgs{
			DatastoreId: pulumi.String(a.DiskDatastore),
			Interface:   pulumi.String("ide2"),
			Dns:         vm.VirtualMachineInitializationDnsArgs{Servers: pulumi.ToStringArray(texts(a.Nameservers))},
			IpConfigs:   vm.VirtualMachineInitializationIpConfigArray{a.ipConfig(node)},
		},
		Agent: vm.VirtualMachineAgentArgs{
			Enabled: pulumi.Bool(a.agent()),
			Timeout: pulumi.String("3m"), // an agent that stays silent is no error: the apply that follows is what decides
		},

		// Nothing on the machine outlives its disk: a shutdown would only wait for Kubernetes to drain.
		StopOnDestroy:     pulumi.Bool(true),
		TimeoutCreate:     pulumi.Int(900),
		TimeoutStartVm:    pulumi.Int(300),
		TimeoutStopVm:     pulumi.Int(300),
		TimeoutShutdownVm: pulumi.Int(300),
		TimeoutReboot:     pulumi.Int(600),
	}, b.child(a.ProxmoxProvider,
		pulumi.Protect(node.Role == machineconfig.ControlPlane),
		pulumi.DeleteBeforeReplace(true), // the VM id, the MAC and the IP address are taken until the old one is gone
		// The provider's default for an unset speed differs from what it reads, and each such change reboots the machine.
		pulumi.IgnoreChanges([]string{"disks[0].speed"}),
		leftovers,
	))
}

// reclaim has the VM that an interrupted creation left behind removed, right before the next attempt: the engine does not
// know of it, and its id is taken. It runs neither in previews nor for a VM that is in the state.
func (b *builder) reclaim(node Node) (pulumi.ResourceOption, error) {
	if b.args.ProxmoxAPI == nil {
		return pulumi.Composite(), nil
	}
	ctx, api := b.ctx.Context(), *b.args.ProxmoxAPI
	left := reclaim.VM{
		Host: node.Host, ID: node.VMID, Name: node.Name,
		Description: b.args.description(node), Address: node.Address.String(),
	}
	hook, err := b.ctx.RegisterResourceHook(b.name+"-"+node.Name+"-reclaim", func(*pulumi.ResourceHookArgs) error {
		return reclaim.Reclaim(ctx, api, left)
	}, nil)
	if err != nil {
		return nil, err
	}
	return pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeCreate: []*pulumi.ResourceHook{hook}}), nil
}

// description tells whose a VM is; a VM left behind by an interrupted run is known by it.
func (a TalosClusterArgs) description(node Node) string {
	return fmt.Sprintf("Talos %s of cluster %s, managed by Slipway", node.Role, a.ClusterName)
}

func (a TalosClusterArgs) networkDevice(node Node) vm.VirtualMachineNetworkDeviceArgs {
	device := vm.VirtualMachineNetworkDeviceArgs{
		Bridge:     pulumi.String(a.Bridge),
		Model:      pulumi.String("virtio"),
		MacAddress: pulumi.String(strings.ToUpper(node.MAC)), // as Proxmox reads it back
	}
	if a.VLAN != 0 {
		device.VlanId = pulumi.Int(a.VLAN)
	}
	return device
}

func (a TalosClusterArgs) ipConfig(node Node) vm.VirtualMachineInitializationIpConfigArgs {
	address := pulumi.String(netip.PrefixFrom(node.Address, a.NodeCIDR.Bits()).String())
	gateway := pulumi.String(a.Gateway.String())
	if node.Address.Is6() {
		return vm.VirtualMachineInitializationIpConfigArgs{
			Ipv6: vm.VirtualMachineInitializationIpConfigIpv6Args{Address: address, Gateway: gateway},
		}
	}
	return vm.VirtualMachineInitializationIpConfigArgs{
		Ipv4: vm.VirtualMachineInitializationIpConfigIpv4Args{Address: address, Gateway: gateway},
	}
}

// tags are in the order in which Proxmox keeps them, without repetition: any other order would show as a change.
func (a TalosClusterArgs) tags(node Node) []string {
	tags := append([]string{"slipway", "talos", strings.ToLower(a.ClusterName), string(node.Role)}, a.Tags...)
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
