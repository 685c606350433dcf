// Package vmchange knows what the Proxmox provider does when an input of a VM changes. It imports no Pulumi.
//
// The lists are those of the provider's update (bpg/terraform-provider-proxmox, proxmoxtf/resource/vm: vmUpdate, and the schema's
// ForceNew), the same in v0.66.0 and v0.69.1, by the inputs' names in Pulumi. Everything else is changed while the VM runs: name,
// description, tags, the image in the CD drive, and the Proxmox node, to which the provider migrates the running VM.
package vmchange

import (
	"reflect"
	"slices"
)

// rebooting are the inputs for which the provider reboots a running VM. For disks it depends: v0.66.0 reboots for every change, v0.69.1 for
// few. Another datastore of a disk or of the cloud-init drive shuts the VM down and starts it.
var rebooting = []string{
	"acpi", "agent", "audioDevice", "bios", "bootOrders", "cpu", "disks", "efiDisk", "hostpcis", "initialization", "keyboardLayout",
	"kvmArguments", "machine", "memory", "networkDevices", "numas", "operatingSystem", "scsiHardware", "serialDevices", "started",
	"tabletDevice", "tpmState", "usbs", "vga", "watchdog",
}

// replacing are the inputs for which the provider deletes the VM and creates it anew. Of the TPM it is its datastore or version, of the
// clone and of a template everything.
var replacing = []string{"clone", "template", "tpmState", "vmId"}

// Reboots reports whether a change of an input may reboot the VM.
func Reboots(input string) bool { return slices.Contains(rebooting, input) }

// Replaces reports whether a change of an input replaces the VM.
func Replaces(input string) bool { return slices.Contains(replacing, input) }

// Rebooting returns the inputs that differ and whose change may reboot the VM, sorted.
func Rebooting(before, after map[string]any) []string {
	var changed []string
	for _, input := range rebooting {
		read := clean
		if input == "disks" {
			read = disks
		}
		if !reflect.DeepEqual(read(before[input]), read(after[input])) {
			changed = append(changed, input)
		}
	}
	return changed
}

// DiskProperties are those of a disk that the program declares. Of the others, such as speed, the provider reads back more than it was
// given.
var DiskProperties = []string{"datastoreId", "discard", "fileFormat", "interface", "iothread", "size", "ssd"}

// disks returns what is declared of each disk; nil without any.
func disks(value any) any {
	list, _ := value.([]any)
	var all []any
	for _, item := range list {
		disk, _ := item.(map[string]any)
		declared := map[string]any{}
		for _, property := range DiskProperties {
			declared[property] = clean(disk[property])
		}
		all = append(all, declared)
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// defaults is the key under which Pulumi lists the inputs of an object that it has filled in itself.
const defaults = "__defaults"

// clean returns a value without Pulumi's own keys and without what is empty; nil for an empty one.
func clean(value any) any {
	switch value := value.(type) {
	case map[string]any:
		all := map[string]any{}
		for key, item := range value {
			if item = clean(item); key != defaults && item != nil { // a property of which Pulumi ignores changes may be null
				all[key] = item
			}
		}
		return orNil(len(all), all)
	case []any:
		all := make([]any, len(value))
		for i, item := range value {
			all[i] = clean(item)
		}
		return orNil(len(all), all)
	}
	return value
}

func orNil(length int, value any) any {
	if length == 0 {
		return nil
	}
	return value
}
