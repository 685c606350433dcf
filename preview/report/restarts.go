package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster/machineconfig"
)

// restarts returns what restarts, as sentences, in the order of a run, in which the resources depend on each other in components/talos
// (TalosCluster) and stacks (deploy). Workers that join after the gate come after Cilium.
func (r *StackReport) restarts(before, after *Stack) []string {
	up := r.upgrade(before, after)
	joining := func(name string) bool {
		machine := machineOf(after, name)
		return after.Keys["workers.join"] == "afterGate" && machine != nil && !machine.ControlPlane
	}
	first := func(name string) bool { return !joining(name) }
	machines := slices.Concat(r.newAuthorities(before), r.removals(), r.machineRestarts(first))
	network, services, flux := r.rollouts()
	if len(r.refusals(before, after)) > 0 {
		return slices.Concat(machines, []string{"Here `up` stops, because it refuses the versions."}, flux)
	}
	return slices.Concat(machines, up.sentences, r.configurationRestarts(first, up), network,
		r.machineRestarts(joining), r.configurationRestarts(joining, up), services, flux, r.again())
}

// newAuthorities says what another CA of Kubernetes restarts.
func (r *StackReport) newAuthorities(before *Stack) []string {
	const key = "lifecycle.certificateAuthorities.kubernetes"
	if len(before.Keys) == 0 || !slices.ContainsFunc(r.Keys, func(change Change) bool { return change.Path == key }) {
		return nil
	}
	return []string{"`up` replaces Kubernetes' CA on all nodes, without a reboot: API servers and kubelets restart, one node after the " +
		"other, and then every workload whose pods use the Kubernetes API, one after the other."}
}

// removals says which machines leave the cluster before any other machine changes, in the order of their removal.
func (r *StackReport) removals() []string {
	leaves := func(machine MachineChange) bool { return machine.drained }
	names := slices.Concat(
		slices.Sorted(slices.Values(r.named(func(m MachineChange) bool { return leaves(m) && m.controlPlane }))),
		slices.Sorted(slices.Values(r.named(func(m MachineChange) bool { return leaves(m) && !m.controlPlane }))))
	if len(names) == 0 {
		return nil
	}
	sentence := fmt.Sprintf("`up` drains %s and shuts the machines down, control planes first, before any other machine changes.", list(names))
	if again := r.named(func(m MachineChange) bool { return leaves(m) && m.State == Replaced }); len(again) > 0 {
		sentence += fmt.Sprintf(" The VMs of %s are then deleted and made anew.", list(again))
	}
	if gone := r.named(func(m MachineChange) bool { return leaves(m) && m.State == Removed }); len(gone) > 0 {
		sentence += fmt.Sprintf(" The VMs of %s are deleted at the end.", list(gone))
	}
	return []string{sentence}
}

// named returns the names of the machines for which is reports true.
func (r *StackReport) named(is func(MachineChange) bool) []string {
	var names []string
	for _, machine := range r.Machines {
		if is(machine) {
			names = append(names, machine.Name)
		}
	}
	return names
}

// machineRestarts says which of some machines restart because their VMs change.
func (r *StackReport) machineRestarts(of func(string) bool) []string {
	var sentences []string
	anew := r.named(func(m MachineChange) bool { return of(m.Name) && m.State == Replaced && !m.drained })
	if len(anew) > 0 {
		sentences = append(sentences, fmt.Sprintf("The VMs of %s are deleted and made anew, without a drain.", list(anew)))
	}
	if names := r.named(func(m MachineChange) bool { return of(m.Name) && m.Reboots }); len(names) > 0 {
		sentences = append(sentences, fmt.Sprintf("Proxmox reboots %s for the change of the VM, each drained and in its turn: control planes "+
			"one after the other, then `lifecycle.maxUnavailable` workers at once.", list(names)))
	}
	return sentences
}

// configurationRestarts says what the changed configurations of some machines restart. A machine that is made anew starts with its own.
func (r *StackReport) configurationRestarts(of func(string) bool, up upgrade) []string {
	anew := r.named(func(m MachineChange) bool { return m.State == Replaced })
	rebooted := r.named(func(m MachineChange) bool { return m.Reboots })
	more, another := "", "a"
	if up.reboots {
		more, another = " once more", "another"
	}
	var sentences, without, images []string
	for _, one := range r.Configurations {
		names := slices.DeleteFunc(slices.Clone(one.Of), func(name string) bool { return !of(name) || slices.Contains(anew, name) })
		var lines []string
		if len(names) > 0 && machineconfig.RebootsByItself(r.talos) {
			lines = needsReboot(one.Lines)
		}
		if len(lines) == 0 && !up.hasDone(one.Lines) {
			said, rest := r.effectRestarts(names, more)
			sentences, names = append(sentences, said...), rest
		}
		switch {
		case len(names) == 0:
		case len(lines) > 0:
			sentences = append(sentences, fmt.Sprintf("Talos reboots %s%s for %s, each drained and in its turn: control planes one after "+
				"the other, `lifecycle.maxUnavailable` workers at once.", list(names), more, code(lines[0])))
		case up.hasDone(one.Lines):
			images = append(images, names...)
		default:
			without = append(without, slices.DeleteFunc(names, func(name string) bool { return slices.Contains(rebooted, name) })...)
		}
	}
	if len(without) > 0 {
		sentences = append(sentences, fmt.Sprintf("Talos takes over the changed configuration of %s without %s reboot, each in its turn "+
			"and without a drain.", list(without), another))
	}
	if len(images) > 0 {
		sentences = append(sentences, fmt.Sprintf("The configuration of %s gets the images of the upgrade, for which nothing restarts any more.",
			list(images)))
	}
	return sentences
}

// effectRestarts says which machines with the same change need more than Talos does at once. It returns the names of the others.
func (r *StackReport) effectRestarts(names []string, more string) (sentences, rest []string) {
	var said []string // machines of which a sentence speaks
	for _, one := range []struct {
		needs   machineconfig.Effect
		happens string
	}{
		{machineconfig.NeedsReboot, "`up` reboots %s" + more + " for %s, each drained and in its turn: control planes one after the other, " +
			"`lifecycle.maxUnavailable` workers at once."},
		{machineconfig.RestartsPods, "The kubelet starts static pods again on %s for %s, each in its turn and without a drain: the API " +
			"servers go one after the other."},
		{machineconfig.MayIsolate, "Without a reboot, each in its turn, %s try another %s first, and take the former " +
			"configuration back if nobody reaches it."},
		{machineconfig.MayIsolateAndRestartsPods, "Without a reboot, each in its turn, %s try another %s first, with which the kubelet starts " +
			"static pods again, and take the former configuration back if nobody reaches it."},
		{machineconfig.RestartsCRI, "Talos restarts containerd on %s for %s, each in its turn and without a drain: pods go on."},
	} {
		var those []string
		for _, name := range names {
			if r.effects[name].needs == one.needs {
				those = append(those, name)
			}
		}
		if len(those) > 0 {
			said = append(said, those...)
			sentences = append(sentences, fmt.Sprintf(one.happens, list(those), code(r.effects[those[0]].part)))
		}
	}
	rest = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(said, name) })
	return sentences, rest
}

// again names the commands that run again. They are in the chain between all others.
func (r *StackReport) again() []string {
	commands := r.Resources.commands()
	if len(commands) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Along the way, these commands run again, gates among them: %s.", list(commands))}
}

// list writes names as code, the first of many.
func list(names []string) string {
	const most = 8
	var parts []string
	for _, name := range names[:min(len(names), most)] {
		parts = append(parts, code(name))
	}
	text := strings.Join(parts, ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
