package report

import (
	"fmt"
	"slices"
	"strings"
)

// restarts returns what restarts, as sentences, in the order in which an up does it.
func (r *StackReport) restarts(before, after *Stack) []string {
	var sentences []string
	if names := r.leaving(); len(names) > 0 {
		sentences = append(sentences, fmt.Sprintf("`up` drains %s, shuts the machines down and deletes them, one after the other, before "+
			"anything else is changed; those that are replaced are then made anew.", list(names)))
	}
	if names := r.rebooted(); len(names) > 0 {
		sentences = append(sentences, fmt.Sprintf("Proxmox reboots %s for the change of the VM, each drained and in its turn: control planes "+
			"one after the other, then `lifecycle.maxUnavailable` workers at once.", list(names)))
	}
	for _, one := range r.Configurations {
		lines := needsReboot(one.Lines)
		if len(lines) == 0 {
			continue
		}
		sentences = append(sentences, fmt.Sprintf("Talos reboots %s for %s, each drained and in its turn: control planes one after "+
			"the other, `lifecycle.maxUnavailable` workers at once.", list(one.Of), code(lines[0])))
	}
	if without := r.withoutReboot(); len(without) > 0 {
		sentences = append(sentences, fmt.Sprintf("Talos takes over the changed configuration of %s without a reboot: control planes one after "+
			"the other, workers in parallel.", list(without)))
	}
	for _, key := range r.Keys {
		switch key.Path {
		case "talos.version":
			sentences = append(sentences, fmt.Sprintf("Talos %s instead of %s: `up` drains and upgrades the machines one after the other, "+
				"control planes first.", code(key.After), code(key.Before)))
		case "kubernetes.version":
			sentences = append(sentences, fmt.Sprintf("Kubernetes %s instead of %s: `up` upgrades the API servers one after the other, then the "+
				"controller managers, the schedulers and the kubelets, without a drain.", code(key.After), code(key.Before)))
		}
	}
	for _, chart := range r.Charts {
		if chart.State != Changed {
			continue
		}
		sentence := "Helm upgrades " + code(chart.Name) + "."
		if chart.Name == "cilium" {
			sentence = "Helm upgrades `cilium`: its agents restart node by node."
		}
		sentences = append(sentences, sentence)
	}
	if again := r.Resources.commands(); len(again) > 0 {
		sentences = append(sentences, fmt.Sprintf("These commands run again, gates among them: %s.", list(again)))
	}
	return sentences
}

// leaving returns the machines that up removes from the cluster before it deletes them, in the order of their removal.
func (r *StackReport) leaving() []string {
	var controlPlanes, workers []string
	for _, machine := range r.Machines {
		switch {
		case !machine.drained:
		case machine.controlPlane:
			controlPlanes = append(controlPlanes, machine.Name)
		default:
			workers = append(workers, machine.Name)
		}
	}
	slices.Sort(controlPlanes)
	slices.Sort(workers)
	return slices.Concat(controlPlanes, workers)
}

// rebooted returns the machines that Proxmox reboots.
func (r *StackReport) rebooted() []string {
	var names []string
	for _, machine := range r.Machines {
		if machine.Reboots {
			names = append(names, machine.Name)
		}
	}
	return names
}

// withoutReboot returns the machines that take over a configuration without a reboot, neither by Talos nor by Proxmox.
func (r *StackReport) withoutReboot() []string {
	rebooted := r.rebooted()
	var names []string
	for _, one := range r.Configurations {
		if len(needsReboot(one.Lines)) > 0 {
			continue
		}
		for _, name := range one.Of {
			if !slices.Contains(rebooted, name) {
				names = append(names, name)
			}
		}
	}
	return names
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
