package talos

import (
	"fmt"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// disks are the system disk and the data disks, on the bus in this order.
func disks(node Node) vm.VirtualMachineDiskArray {
	list := vm.VirtualMachineDiskArray{disk(0, node.Datastore, node.DiskGiB)}
	for i, data := range node.DataDisks {
		list = append(list, disk(i+1, data.Datastore, data.SizeGiB))
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

// settled are the properties of a node's disks whose changes are none: the provider's default for an unset speed differs
// from what it reads, and each such change reboots the machine. Every disk is named, for a * matches none.
func settled(node Node) []string {
	var paths []string
	for i := range len(node.DataDisks) + 1 {
		paths = append(paths, fmt.Sprintf("disks[%d].speed", i))
	}
	return paths
}

// tpm is what the keys of encrypted disks are sealed in, if they are.
func (a TalosClusterArgs) tpm(node Node) vm.VirtualMachineTpmStatePtrInput {
	if !a.secureBoot() {
		return nil
	}
	return vm.VirtualMachineTpmStateArgs{DatastoreId: pulumi.String(node.Datastore), Version: pulumi.String("v2.0")}
}
