// Package vmchange knows what the Proxmox provider does when an input of a VM changes. It imports no Pulumi.
//
// The lists come from the provider's update (bpg/terraform-provider-proxmox v0.95.0, proxmoxtf/resource/vm: vmUpdate, and its
// replacements), by the inputs' names in Pulumi. Everything else is changed while the VM runs: name, description, tags, the image in the CD
// drive, and the Proxmox node, to which the provider migrates the running VM.
//
// With the guest agent, the provider reboots the VM and waits until it runs. Without, it switches the VM off and on again: Talos does not
// shut down.
package vmchange

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// rebooting are the inputs for whose change a node takes its turn: the provider reboots the VM. Some changes of them reboot nothing:
//   - of a network card, which is changed in the running VM: pods may lose their connections, and with a wrong bridge or VLAN the node
//     stays away;
//   - of a disk, which is made bigger or added in the running VM. Another datastore of a disk shuts the VM down and starts it, and so does
//     one of the cloud-init drive before that. A disk that is missing stays in the VM.
//
// Another datastore of the TPM or of the EFI disk gives the VM a new, empty one.
var rebooting = []string{
	"acpi", "agent", "audioDevice", "bios", "bootOrders", "cpu", "disks", "efiDisk", "hostpcis", "initialization", "keyboardLayout",
	"kvmArguments", "machine", "memory", "networkDevices", "numas", "operatingSystem", "scsiHardware", "serialDevices", "started",
	"tabletDevice", "tpmState", "usbs", "vga", "watchdog",
}

// replacing are the inputs for which the provider deletes the VM and creates it anew. It would also do so for another version of the TPM,
// or another type of the EFI disk, of which the program declares one each.
var replacing = []string{"clone", "template", "vmId"}

// Reboots reports whether a change of an input may reboot the VM.
func Reboots(input string) bool { return slices.Contains(rebooting, input) }

// Replaces reports whether a change of an input replaces the VM.
func Replaces(input string) bool { return slices.Contains(replacing, input) }

// Rebooting returns the inputs that differ and whose change may reboot the VM, sorted.
func Rebooting(before, after map[string]any) []string {
	var changed []string
	for _, input := range rebooting {
		equal := equalIn
		if input == "disks" {
			equal = equalDisks
		}
		if !equal(before, after, input) {
			changed = append(changed, input)
		}
	}
	return changed
}

// DiskProperties are those of a disk that the program declares. Of the others, such as speed, the provider reads back more than it was
// given.
var DiskProperties = []string{"datastoreId", "discard", "fileFormat", "interface", "iothread", "size", "ssd"}

func equalDisks(before, after map[string]any, input string) bool {
	return equal(declared(before[input]), declared(after[input]))
}

// Grown returns the interfaces of the disks that become bigger, such as scsi0.
func Grown(before, after map[string]any) []string {
	var grown []string
	was, is := Disks(before), Disks(after)
	for _, disk := range slices.Sorted(maps.Keys(was)) {
		if is[disk] > was[disk] {
			grown = append(grown, disk)
		}
	}
	return grown
}

// Disks returns the sizes of a VM's disks in GiB, by their interfaces, such as scsi0.
func Disks(inputs map[string]any) map[string]float64 {
	list, _ := inputs["disks"].([]any)
	sizes := map[string]float64{}
	for _, item := range list {
		disk, _ := item.(map[string]any)
		name, _ := disk["interface"].(string)
		sizes[name], _ = disk["size"].(float64)
	}
	return sizes
}

// NewMAC returns the MAC address of a VM's network card, if it had another one before; "" otherwise.
func NewMAC(before, after map[string]any) string {
	was, is := macOf(before), macOf(after)
	if was == "" || strings.EqualFold(was, is) {
		return ""
	}
	return is
}

// macOf returns the MAC address of a VM's first network card; "" if it is not known.
func macOf(inputs map[string]any) string {
	cards, _ := inputs["networkDevices"].([]any)
	if len(cards) == 0 {
		return ""
	}
	card, _ := cards[0].(map[string]any)
	mac, _ := card["macAddress"].(string)
	return mac
}

// declared returns what is declared of each disk.
func declared(value any) any {
	list, _ := value.([]any)
	var all []any
	for _, item := range list {
		disk, _ := item.(map[string]any)
		properties := map[string]any{}
		for _, property := range DiskProperties {
			properties[property] = disk[property]
		}
		all = append(all, properties)
	}
	return all
}

// defaults is the key under which Pulumi lists the properties of an object that the plugin has filled in.
const defaults = "__defaults"

// equalIn compares a property of two objects. A default that one release of a plugin has filled in and another has not is equal: the
// program has declared nothing, and the provider keeps what the VM has.
func equalIn(before, after map[string]any, property string) bool {
	isDefault := func(object map[string]any) bool {
		list, _ := object[defaults].([]any)
		return slices.Contains(list, any(property))
	}
	was, had := before[property]
	is, has := after[property]
	return !has && isDefault(before) || !had && isDefault(after) || equal(was, is)
}

// equal compares two values. What is empty, null or missing is equal: a property of which Pulumi ignores changes may be null.
func equal(before, after any) bool {
	if isEmpty(before) && isEmpty(after) {
		return true
	}
	switch was := before.(type) {
	case []any:
		is, isList := after.([]any)
		return isList && slices.EqualFunc(was, is, equal)
	case map[string]any:
		return equalObjects(was, after)
	case nil:
		return equalObjects(nil, after)
	}
	return reflect.DeepEqual(before, after)
}

// equalObjects compares an object with a value, which may be null.
func equalObjects(before map[string]any, other any) bool {
	after, isObject := other.(map[string]any)
	if !isObject && other != nil {
		return false
	}
	for _, properties := range []map[string]any{before, after} {
		for property := range properties {
			if property != defaults && !equalIn(before, after, property) {
				return false
			}
		}
	}
	return true
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case []any:
		return len(value) == 0
	case map[string]any:
		return len(value) == 0
	}
	return false
}
