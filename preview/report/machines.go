package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/cluster/machineconfig"
	"github.com/slipway-platform/slipway/components/machines/proxmox/vmchange"
)

// MachineChange is what would happen to a machine.
type MachineChange struct {
	Name    string   `json:"name"`
	State   string   `json:"state"` // Added, Removed, Replaced, Moved, Changed
	What    []Change `json:"what,omitempty"`
	Reboots bool     `json:"reboots"` // by the Proxmox provider, for a change of the VM

	controlPlane bool
	dataDisks    int
	drained      bool // up removes it from the cluster before its machine is deleted
}

// Replaced is the state of a machine that is deleted and created anew.
const Replaced = "replaced"

// Generation is the Input of a machine's generation. No input of a VM has this name.
const Generation = "generation"

// Moved is the state of a machine that goes to another Proxmox node.
const Moved = "moved"

// compareMachines returns what happens to the machines, those of the change first.
func compareMachines(before, after *Stack, resources Resources) []MachineChange {
	var found []MachineChange
	for _, machine := range after.Machines {
		was := machineOf(before, machine.Name)
		one := MachineChange{Name: machine.Name, State: Changed, controlPlane: machine.ControlPlane, dataDisks: machine.DataDisks}
		if was == nil {
			one.State, one.What = Added, []Change{
				{"VM", "", fmt.Sprint(machine.VMID)}, {"host", "", machine.Host},
			}
			found = append(found, one)
			continue
		}
		one.dataDisks = was.DataDisks
		if one.between(*was, machine, resources.of(typeVM, "-"+machine.Name+"-vm")); len(one.What) > 0 {
			found = append(found, one)
		}
	}
	for _, was := range before.Machines {
		if machineOf(after, was.Name) == nil {
			found = append(found, MachineChange{Name: was.Name, State: Removed, controlPlane: was.ControlPlane, dataDisks: was.DataDisks,
				drained: true, What: []Change{{"VM", fmt.Sprint(was.VMID), ""}, {"host", was.Host, ""}}})
		}
	}
	return found
}

// between sets what changes from one machine to another of the same name. resource is the change of the VM's resource, nil without.
func (m *MachineChange) between(was, is Machine, resource *ResourceChange) {
	var changed []string
	note := func(input, name, before, after string) {
		if before != after {
			m.What = append(m.What, Change{name, before, after})
			changed = append(changed, input)
		}
	}
	role := map[bool]string{true: "control plane", false: "worker"}
	note("role", "role", role[was.ControlPlane], role[is.ControlPlane])
	note("vmId", "VM", fmt.Sprint(was.VMID), fmt.Sprint(is.VMID))
	note("nodeName", "host", was.Host, is.Host)
	of := func(parts []Part) (values map[string]string, inputs map[string]string) {
		values, inputs = map[string]string{}, map[string]string{}
		for _, part := range parts {
			values[part.Name], inputs[part.Name] = part.Value, part.Input
		}
		return values, inputs
	}
	before, inputsBefore := of(was.Parts)
	after, inputsAfter := of(is.Parts)
	for _, name := range union(before, after) {
		input := inputsAfter[name]
		if input == "" {
			input = inputsBefore[name]
		}
		note(input, name, before[name], after[name])
	}
	if resource != nil { // what the model does not know, such as the program's own settings
		for _, input := range inputs(resource.Lines) {
			if input != "nodeName" && !slices.Contains(changed, input) {
				m.What = append(m.What, Change{Path: "VM's " + input, Before: "(see the resources)", After: "(see the resources)"})
				changed = append(changed, input)
			}
		}
	}
	switch {
	case slices.Contains(changed, Generation):
		m.State, m.drained = Replaced, true
	case slices.ContainsFunc(changed, vmchange.Replaces):
		m.State = Replaced
	case was.Host != is.Host:
		m.State = Moved
	}
	m.Reboots = m.State != Replaced && slices.ContainsFunc(changed, vmchange.Reboots)
}

func machineOf(stack *Stack, name string) *Machine {
	return find(stack.Machines, func(machine Machine) bool { return machine.Name == name })
}

// effect is what a machine needs for its changed configuration, and the part of the configuration that needs it.
type effect struct {
	needs machineconfig.Effect
	part  string
}

// effectOf returns what a machine that runs a version of Talos needs for another configuration.
func effectOf(talos string, machine Machine, before, after string) effect {
	role := cluster.Worker
	if machine.ControlPlane {
		role = cluster.ControlPlane
	}
	needs, part := machineconfig.EffectOfLines(talos, role, before, after)
	return effect{needs, part}
}

// immediately are the paths of a machine configuration that Talos 1.12 and 1.13 change without a reboot, and everything below them
// (internal/app/machined/pkg/runtime/v1alpha1, CanApplyImmediate). Documents of other kinds than the first are not compared there.
var immediately = []string{
	"cluster", "debug", "machine.acceptedCAs", "machine.ca", "machine.certSANs", "machine.controlPlane", "machine.features.hostDNS",
	"machine.features.imageCache", "machine.features.kubePrism", "machine.features.kubernetesTalosAPIAccess",
	"machine.features.nodeAddressSortAlgorithm", "machine.install", "machine.kernel", "machine.kubelet", "machine.logging",
	"machine.network", "machine.nodeAnnotations", "machine.nodeLabels", "machine.nodeTaints", "machine.pods", "machine.registries",
	"machine.seccompProfiles", "machine.sysctls", "machine.sysfs", "machine.time",
}

// needsReboot returns the lines for which Talos 1.12 and 1.13 reboot a machine by themselves.
func needsReboot(lines []string) []string {
	var found []string
	for _, line := range lines {
		path, _, _ := strings.Cut(line[2:], " = ")
		if !strings.HasPrefix(path, "machine.") && !strings.HasPrefix(path, "machine[") {
			continue // cluster is in immediately, and everything else is another document
		}
		if !slices.ContainsFunc(immediately, func(prefix string) bool {
			rest, within := strings.CutPrefix(path, prefix)
			return within && (rest == "" || strings.ContainsAny(rest[:1], ".[ "))
		}) {
			found = append(found, path)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
