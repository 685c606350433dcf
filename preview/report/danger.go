package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
)

// dangerousKeys says of keys why their change on a running cluster is dangerous. A key includes those below it. The first that fits counts.
var dangerousKeys = []struct{ key, why string }{
	{"cluster.name", refusedIfItRuns + ": the Kubernetes provider and the mesh know the cluster by it"},
	{"cluster.id", refusedIfItRuns + ": it is in the identities of all pods"},
	{"network.podCIDR", refusedIfItRuns + ": nodes keep the ranges that they have"},
	{"network.serviceCIDR", refusedIfItRuns + ": Services keep their addresses"},
	{"network.nodeCIDR", "is the network of all nodes: etcd and the kubelets choose their addresses in it"},
	{"network.ipv6", "changes the address families of all nodes, pods and Services"},
	{"network.vip", refusedIfItRuns + ": every kubeconfig has the former one"},
	{"network.loadBalancers.mesh", "is the address at which the peers of the mesh reach this cluster: run their `up`, too"},
	{"mesh.peers", "connects other clusters, or disconnects them: run their `up`, too"},
	{"proxmox.endpoint", "names another Proxmox cluster, on which the VMs of the state may not exist"},
	{"talos.diskEncryption", "is refused for machines that stay: replace them one after the other"},
	{"certManager.enabled", "installs cert-manager or removes it, with its namespace and the keys of issuers there"},
	{"cilium.mode", "is refused by `up` until the mode is switched on purpose"},
	{"cilium.encryption", "differs between nodes while they change: their pods may not reach each other meanwhile"},
	{"cilium.routing", "differs between nodes while they change: their pods may not reach each other meanwhile"},
	{"gitops.enabled", "installs or uninstalls Flux"},
	{"gitops.url", otherSource},
	{"gitops.branch", otherSource},
	{"gitops.oci.url", otherSource},
	{"gitops.bucket", otherSource},
	{"gitops.path", otherSource},
	{"gitops.deletionPolicy", "decides whether what Flux has applied is deleted with Flux"},
	{"lifecycle.certificateAuthorities.kubernetes", "restarts every workload whose pods use the Kubernetes API"},
	{"storage.role", "decides where volumes are"},
	{"storage.radosNamespace", refusedIfItRuns + " as a consumer: a StorageClass does not change, and no volume moves"},
}

const refusedIfItRuns = "is refused by `up` if the cluster runs"

const otherSource = "is where Flux reads what it applies: Flux deletes what is not there, and this report has read the checkout only"

// dangers returns what must be read before everything else.
func (r *StackReport) dangers(before, after *Stack) []string {
	if r.State == Added {
		return nil
	}
	var refused []string
	for _, why := range r.refusals(before, after) {
		if strings.HasPrefix(why, "cilium.") && engineOf(after.Owners[cilium]) != "" {
			why += ". " + engineOf(after.Owners[cilium]) + ", which owns it, does not refuse it"
		}
		refused = append(refused, "if the cluster runs what the base declares, `up` refuses this change: "+why+".")
	}
	return slices.Concat(refused, r.machineDangers(before, after), r.existingDangers(), protectedRemoved(before, after), r.keyDangers(before),
		secretDangers(before, after))
}

func (r *StackReport) machineDangers(before, after *Stack) []string {
	var found []string
	was, is := controlPlanes(before), controlPlanes(after)
	var rebooted []string
	leaving := 0
	for _, machine := range r.Machines {
		gone := map[string]string{Removed: "removed", Replaced: "replaced: its disks are deleted"}[machine.State]
		switch {
		case gone != "" && machine.controlPlane:
			leaving++
			const protected = " Its VM is protected: `up` refuses until the protection is removed (`pulumi state unprotect URN`)."
			then := protected + " `up` then removes its member from etcd, its machine and its Node."
			switch {
			case machine.State == Replaced && machine.drained:
				then = " `up` drains it, removes its member from etcd, its machine and its Node, and makes the machine anew."
			case machine.State == Replaced:
				then = protected + " Declare another `generation` of it, too: then `up` drains it, and removes its member from etcd and its Node."
			}
			found = append(found, fmt.Sprintf("control plane %s is %s.%s", code(machine.Name), gone, then))
		case gone != "" && machine.dataDisks > 0:
			found = append(found, fmt.Sprintf("worker %s is %s, and so is what is on its %s.",
				code(machine.Name), gone, plural(machine.dataDisks, "data disk")))
		case gone != "":
			found = append(found, fmt.Sprintf("worker %s is %s.", code(machine.Name), gone))
		}
		for _, change := range machine.What {
			switch {
			case change.Path == "role":
				found = append(found, fmt.Sprintf("%s becomes a %s: a machine keeps the role that it was installed with. Replace it.",
					code(machine.Name), change.After))
			case change.Path == "address" && change.Before != "" && change.After != "":
				found = append(found, fmt.Sprintf("%s gets the address %s: its configuration is sent there, and the machine still has %s. "+
					"`up` refuses that if the cluster runs.",
					code(machine.Name), code(change.After), code(change.Before)))
			}
		}
		if machine.Reboots && machine.controlPlane {
			rebooted = append(rebooted, machine.Name)
		}
	}
	if leaving > 1 {
		found = append(found, fmt.Sprintf(
			"`up` refuses this change: %d control planes of %d go at once. Make it one at a time: without %s, etcd of %d has no quorum.",
			leaving, was, plural(was-was/2, "member"), was))
	}
	if was != is && was > 0 {
		found = append(found, fmt.Sprintf("etcd goes from %s to %s: quorum is %d of %d.",
			plural(was, "member"), plural(is, "member"), is/2+1, is))
	}
	if len(rebooted) == 1 && was == 1 {
		found = append(found, "Proxmox reboots the only control plane: the Kubernetes API is away until it is back.")
	}
	return found
}

func controlPlanes(stack *Stack) int {
	count := 0
	for _, machine := range stack.Machines {
		if machine.ControlPlane {
			count++
		}
	}
	return count
}

// protectedRemoved names the protected resources that the program no longer registers, except for the VMs, which are named as machines.
func protectedRemoved(before, after *Stack) []string {
	if !before.Program.Works() || !after.Program.Works() {
		return nil
	}
	kept := byTitle(after.Program)
	var found []string
	for _, resource := range before.Program.Resources {
		if _, is := kept[resource.Title()]; !is && resource.Protect && resource.Type != typeVM {
			found = append(found, fmt.Sprintf("%s is removed, and it is protected: `up` refuses until the protection is removed.",
				code(resource.Title())))
		}
	}
	return found
}

// keyDangers returns why changed keys are dangerous; none without keys of the base, because then every key is new.
func (r *StackReport) keyDangers(before *Stack) []string {
	if len(before.Keys) == 0 {
		return nil
	}
	var found []string
	said := map[string]bool{}
	for _, change := range r.Keys {
		for _, one := range dangerousKeys {
			if !cluster.Within(change.Path, one.key) {
				continue
			}
			if !said[one.key] {
				found = append(found, fmt.Sprintf("%s changes from %s to %s. It %s.",
					code(change.Path), value(change.Before), value(change.After), one.why))
			}
			said[one.key] = true
			break
		}
	}
	return found
}

// secretDangers names the secrets whose ciphertexts differ.
func secretDangers(before, after *Stack) []string {
	var changed, added, removed []string
	for _, key := range union(before.Secrets, after.Secrets) {
		switch was, is := before.Secrets[key], after.Secrets[key]; {
		case was == "":
			added = append(added, key)
		case is == "":
			removed = append(removed, key)
		case was != is:
			changed = append(changed, key)
		}
	}
	var found []string
	if before.Salt != after.Salt && before.Salt != "" && len(changed) > 0 {
		return []string{"the stack file is encrypted with another passphrase or key. Whether secrets changed, too, cannot be seen here."}
	}
	if len(changed) > 0 {
		found = append(found, fmt.Sprintf("rotated or encrypted anew: %s. Before the merge, see the order of a rotation in docs/credentials.md.",
			list(changed)))
	}
	if len(removed) > 0 {
		found = append(found, fmt.Sprintf("secrets are removed: %s.", list(removed)))
	}
	if len(added) > 0 && len(before.Keys) > 0 {
		found = append(found, fmt.Sprintf("secrets are added: %s.", list(added)))
	}
	if slices.Contains(changed, "meshCA") {
		found = append(found, "`meshCA` must be the same in all stacks of the mesh: another CA replaces every certificate of it.")
	}
	return found
}

func plural(count int, noun string) string {
	if count == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", count, noun)
}
