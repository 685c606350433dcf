package proxmox

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/muhlba91/pulumi-proxmoxve/sdk/v6/go/proxmoxve/vm"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/machines/proxmox/vmchange"
)

// cdDrive is the CD drive with the boot image. Before qemu-server 8.0.7, a q35 machine with ide1 or ide3 does not start; ide2 is the
// cloud-init drive.
const cdDrive = "ide0"

// ignoredProperties are the properties that an existing VM keeps:
//   - with its CD drive at ide3 it would be rebooted for ide0, and another block smbios would change its UUID;
//   - it has the image of its creation in the drive, or after a move none, and boots from its disk;
//   - for another datastore, the provider would give it a new TPM, without the keys of its encrypted disks, and a new EFI disk.
//     With another encryption of disks, it would lose or get a TPM, which its disks do not know;
//   - for another datastore of the cloud-init drive, the provider would switch the VM off and on, and off once more for the disks. A
//     machine that has just been switched on does not hear that it is to shut down. For another content, bpg/terraform-provider-proxmox
//     before v0.99.0 sends the drive without media=cdrom, which Proxmox VE refuses for a running VM (#2707). A machine with a configuration
//     takes its name servers and its gateway from there, and keeps the address, with the prefix of the drive, too.
var ignoredProperties = []string{
	"cdrom.interface", "cdrom.fileId", "bootOrders", "smbios", "efiDisk", "tpmState", "initialization",
}

// disks returns the system disk and then the data disks, in the order of their SCSI numbers. A disk has a thread of its own if it has a
// controller of its own; otherwise Proxmox VE warns of the thread at each start.
func disks(c *cluster.Cluster, node cluster.Machine) vm.VirtualMachineDiskArray {
	thread := c.Proxmox.SCSIController == cluster.SCSISingle
	list := vm.VirtualMachineDiskArray{disk(0, node.Datastore, node.Disk.GiB(), thread)}
	for i, data := range node.DataDisks {
		list = append(list, disk(i+1, data.Datastore, data.Size.GiB(), thread))
	}
	return list
}

func disk(index int, datastore string, size int, thread bool) vm.VirtualMachineDiskArgs {
	return vm.VirtualMachineDiskArgs{
		DatastoreId: pulumi.String(datastore),
		Interface:   pulumi.String(fmt.Sprintf("scsi%d", index)),
		FileFormat:  pulumi.String("raw"),
		Size:        pulumi.Int(size),
		Iothread:    pulumi.Bool(thread),
		Discard:     pulumi.String("on"),
		Ssd:         pulumi.Bool(true),
	}
}

// refuseDisks returns an error for each disk of a VM that would become smaller, which Proxmox VE refuses, and for each undeclared disk,
// which the provider would take out of the running VM. stored are the inputs of the VM in the state.
func refuseDisks(node cluster.Machine, stored map[string]any) error {
	pool, _, _ := strings.Cut(node.Path, ".")
	declared, paths := map[string]int{"scsi0": node.Disk.GiB()}, map[string]string{"scsi0": pool + ".disk"}
	for i, data := range node.DataDisks {
		name := fmt.Sprintf("scsi%d", i+1)
		declared[name], paths[name] = data.Size.GiB(), fmt.Sprintf("%s.dataDisks[%d].size", pool, i)
	}
	was := vmchange.Disks(stored)
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(was)) {
		switch size, exists := declared[name]; {
		case !exists:
			problems = append(problems, fmt.Errorf("%s.dataDisks: %s has a disk %s of %gGiB, which is not declared; declare it, or detach it "+
				"in Proxmox VE and run pulumi refresh, or raise the node's generation, which replaces the machine", pool, node.Name, name, was[name]))
		case float64(size) < was[name]:
			problems = append(problems, fmt.Errorf("%s: %dGiB is smaller than the disk %s of %s, and a disk only grows; write %gGiB, "+
				"or raise the node's generation, which replaces the machine", paths[name], size, name, node.Name, was[name]))
		}
	}
	return errors.Join(problems...)
}

// ignoredDiskProperties returns the disk properties whose changes are ignored. The provider's default for an unset speed differs
// from the speed that it reads. So it reports a difference on every run, which would reboot the VM. Every disk is named, because * matches
// none.
func ignoredDiskProperties(node cluster.Machine) []string {
	var paths []string
	for i := range len(node.DataDisks) + 1 {
		paths = append(paths, fmt.Sprintf("disks[%d].speed", i))
	}
	return paths
}

// tpm returns the virtual TPM that seals the keys of encrypted disks; nil without secure boot.
func tpm(node cluster.Machine) vm.VirtualMachineTpmStatePtrInput {
	if !node.DiskEncryption.SecureBoot() {
		return nil
	}
	return vm.VirtualMachineTpmStateArgs{DatastoreId: pulumi.String(node.Datastore), Version: pulumi.String("v2.0")}
}
