package talos

import (
	"fmt"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
)

// disks are the system disk and the data disks, on the bus in this order.
func disks(node cluster.Machine) vm.VirtualMachineDiskArray {
	list := vm.VirtualMachineDiskArray{disk(0, node.Datastore, node.Disk.GiB())}
	for i, data := range node.DataDisks {
		list = append(list, disk(i+1, data.Datastore, data.Size.GiB()))
	}
	return list
}

func disk(index int, datastore string, size int) vm.VirtualMachineDiskArgs {
	return vm.VirtualMachineDiskArgs{
		DatastoreId: pulumi.String(datastore),
		Interface:   pulumi.String(fmt.Sprintf("scsi%d", index)),
		FileFormat:  pulumi.String("raw"),
		Size:        pulumi.Int(size),
		Iothread:    pulumi.Bool(true),
		Discard:     pulumi.String("on"),
		Ssd:         pulumi.Bool(true),
	}
}

// ignoredDiskProperties are disk properties to ignore: the provider's default for an unset speed differs from what it reads,
// so that it reports a difference on every run, which would reboot the VM. Every disk is named, because * matches none.
func ignoredDiskProperties(node cluster.Machine) []string {
	var paths []string
	for i := range len(node.DataDisks) + 1 {
		paths = append(paths, fmt.Sprintf("disks[%d].speed", i))
	}
	return paths
}

// tpm is the virtual TPM that the keys of encrypted disks are sealed in; nil if they are not.
func (b *builder) tpm(node cluster.Machine) vm.VirtualMachineTpmStatePtrInput {
	if !b.Talos.SecureBoot() {
		return nil
	}
	return vm.VirtualMachineTpmStateArgs{DatastoreId: pulumi.String(node.Datastore), Version: pulumi.String("v2.0")}
}
