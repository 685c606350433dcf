package talos

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/download"
	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/components/talos/reclaim"
	"github.com/slipway-platform/slipway/internal/machineconfig"
)

// vm makes a node's machine and starts it. It boots the image from its CD drive, since its disk is empty, with the address
// that the cloud-init drive gives it, and waits there for its configuration.
//
// A control plane's machine is protected: neither an up nor a destroy deletes or replaces it, whatever the stack file says.
// To do that all the same, take the protection away first, from this one (pulumi state unprotect URN) or from the whole
// stack (pulumi state unprotect --all), and then run up or destroy. The next up protects what it keeps again.
func (b *builder) vm(node Node, image *download.File, after []pulumi.Resource) (*vm.VirtualMachine, error) {
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
			DatastoreId: pulumi.String(node.Datastore),
			FileFormat:  pulumi.String("raw"),
			Type:        pulumi.String("4m"),
		},
		TpmState: a.tpm(node),
		Disks:    disks(node),
		// All three are stated: the provider has a default for the whole block, which shows as a change on every run.
		Cdrom: vm.VirtualMachineCdromArgs{
			Enabled:   pulumi.Bool(true),
			FileId:    image.ID().ToStringOutput(),
			Interface: pulumi.String("ide3"),
		},
		// An empty disk does not boot, so the first boot is from the CD and every later one from the disk.
		BootOrders: pulumi.ToStringArray([]string{"scsi0", "ide3"}),

		NetworkDevices: vm.VirtualMachineNetworkDeviceArray{networkDevice(node)},
		Initialization: vm.VirtualMachineInitializationArgs{
			DatastoreId: pulumi.String(node.Datastore),
			Interface:   pulumi.String("ide2"),
			Dns:         vm.VirtualMachineInitializationDnsArgs{Servers: pulumi.ToStringArray(a.nameservers())},
			IpConfigs:   vm.VirtualMachineInitializationIpConfigArray{a.ipConfig(node)},
		},
		Agent: vm.VirtualMachineAgentArgs{
			Enabled: pulumi.Bool(a.extensions().Agent()),
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
		pulumi.IgnoreChanges(settled(node)),
		pulumi.DependsOn(after),
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

func networkDevice(node Node) vm.VirtualMachineNetworkDeviceArgs {
	device := vm.VirtualMachineNetworkDeviceArgs{
		Bridge:     pulumi.String(node.Bridge),
		Model:      pulumi.String("virtio"),
		MacAddress: pulumi.String(strings.ToUpper(node.MAC)), // as Proxmox reads it back
	}
	if node.VLAN != 0 {
		device.VlanId = pulumi.Int(node.VLAN)
	}
	return device
}

// ipConfig is what the machine is reached at until it has its configuration, which says the same.
func (a TalosClusterArgs) ipConfig(node Node) vm.VirtualMachineInitializationIpConfigArgs {
	config := vm.VirtualMachineInitializationIpConfigArgs{
		Ipv4: vm.VirtualMachineInitializationIpConfigIpv4Args{
			Address: pulumi.String(netip.PrefixFrom(node.Address, a.NodeCIDR.Bits()).String()),
			Gateway: pulumi.String(a.Gateway.String()),
		},
	}
	if a.IPv6 != nil {
		config.Ipv6 = vm.VirtualMachineInitializationIpConfigIpv6Args{
			Address: pulumi.String(netip.PrefixFrom(node.Address6, a.IPv6.NodeCIDR.Bits()).String()),
			Gateway: pulumi.String(a.IPv6.Gateway.String()),
		}
	}
	return config
}

func (a TalosClusterArgs) nameservers() []string {
	servers := texts(a.Nameservers)
	if a.IPv6 != nil {
		servers = append(servers, texts(a.IPv6.Nameservers)...)
	}
	return servers
}

// tags are in the order in which Proxmox keeps them, without repetition: any other order would show as a change.
func (a TalosClusterArgs) tags(node Node) []string {
	tags := slices.Concat([]string{"slipway", "talos", strings.ToLower(a.ClusterName), string(node.Role)}, a.Tags, node.Tags)
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
