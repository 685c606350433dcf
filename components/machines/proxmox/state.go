package proxmox

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/machines/proxmox/reclaim"
)

// checkState refuses to update a VM that is not as the state says. After an update that Proxmox VE has refused, the state has what was
// declared: the provider stores it before it has changed the VM. The next run would see no difference, change nothing, and end well. A run
// after it would change the VM outside its node's turn.
//
// What an interrupted update has changed is not in the state, and is what is declared.
func checkState(node cluster.Machine, change *pulumi.ResourceHookArgs, seen reclaim.Seen) error {
	if seen.Node == "" {
		return nil // the provider finds out
	}
	from, _ := movedFrom(change.OldOutputs, node)
	if from != "" && from != seen.Node {
		return errNotAsStored(node, "is on Proxmox node "+seen.Node, from)
	}
	given, becomes := optionsOf(mappable(change.OldInputs)), optionsOf(mappable(change.NewInputs))
	stored := optionsOf(mappable(change.OldOutputs))
	for _, option := range slices.Sorted(maps.Keys(stored)) {
		has, known := seen.Options[option]
		if !known && !reclaim.IsDisk(option) {
			continue // Proxmox VE's default, or a datastore that is not known
		}
		if has != stored[option] && has != becomes[option] {
			return errNotAsStored(node, "has "+shown(option, has), stored[option])
		}
		// A difference that only the outputs have is one that the provider takes back without a turn.
		if was, is := given[option]; is && was != stored[option] && stored[option] != becomes[option] {
			return errNotAsStored(node, "was to have "+shown(option, was), stored[option])
		}
	}
	return nil
}

// notOurs returns why the disks of a VM must not change: it has one that the state does not know, such as a volume of a CSI driver; ""
// without any. With any change of the disks, the provider takes all others out of the running VM, or takes the disk for a new one of the
// same number (bpg/terraform-provider-proxmox v0.95.0, proxmoxtf/resource/vm: vmUpdate).
func notOurs(node cluster.Machine, change *pulumi.ResourceHookArgs, seen reclaim.Seen) string {
	stored, becomes := optionsOf(mappable(change.OldOutputs)), optionsOf(mappable(change.NewInputs))
	for _, option := range slices.Sorted(maps.Keys(seen.Options)) {
		_, known := stored[option]
		interrupted := seen.Options[option] == becomes[option] && !slices.Contains(seen.Foreign, option)
		if reclaim.IsDisk(option) && !known && !interrupted {
			return fmt.Sprintf("VM %d has a disk %s, which is neither declared nor in the state, and the Proxmox provider would take it out of "+
				"the running VM when it changes the others; a drain detaches volumes of a CSI driver; detach any other disk in Proxmox VE",
				node.VMID, option)
		}
	}
	return ""
}

// optionsOf returns what the properties of a VM say of its hardware, as reclaim.Seen has it.
func optionsOf(properties map[string]any) map[string]string {
	found := map[string]string{}
	text := func(option string, value any) {
		if value != nil {
			found[option] = decimal(value)
		}
	}
	block := func(name string) map[string]any { below, _ := properties[name].(map[string]any); return below }
	text(reclaim.OptionMemory, block("memory")["dedicated"])
	text(reclaim.OptionCores, block("cpu")["cores"])
	text(reclaim.OptionController, properties["scsiHardware"])
	devices, _ := properties["networkDevices"].([]any)
	for i, device := range devices {
		if one, is := device.(map[string]any); is && one["bridge"] != nil {
			found[fmt.Sprint(reclaim.OptionNetwork, i)] = reclaim.Network(fmt.Sprint(one["bridge"]), decimal(one["vlanId"]))
		}
	}
	disks, _ := properties["disks"].([]any)
	for _, disk := range disks {
		if one, is := disk.(map[string]any); is && one["interface"] != nil {
			name := fmt.Sprint(one["interface"])
			text(name, one["size"])
			text(name+reclaim.OptionDatastore, one["datastoreId"])
		}
	}
	return found
}

// decimal is a text or a number; "" without either.
func decimal(value any) string {
	switch value := value.(type) {
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	case nil:
		return ""
	}
	return fmt.Sprint(value)
}

// shown is an option with its value as a message says it.
func shown(option, value string) string {
	switch {
	case value == "":
		return "no " + option
	case option == reclaim.OptionMemory:
		return option + " of " + value + " MiB"
	case reclaim.IsDisk(option):
		return option + " of " + value + " GiB"
	}
	return option + " " + value
}

// errNotAsStored refuses the update of a VM that is not as the state says.
func errNotAsStored(node cluster.Machine, is, state string) error {
	return fmt.Errorf("%s: VM %d %s, and the state says %s: an update or a migration has failed, or somebody has changed the VM; "+
		"run pulumi refresh, then up again", node.Name, node.VMID, is, state)
}

// errNotSeen refuses the update of a VM that Proxmox VE says nothing of: an update that the provider begins and cannot end would have to be
// taken out of the state by hand.
func errNotSeen(node cluster.Machine, why error) error {
	return fmt.Errorf("%s: it is not known what VM %d is now, so it is not changed: %w; if its Proxmox node is away for long, "+
		"name the machine in lifecycle.skip; if it is gone for good: docs/nodes.md, A Proxmox node that is gone", node.Name, node.VMID, why)
}
