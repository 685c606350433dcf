package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/labels"
)

// usage remembers which path has a value that must be unique, kind by kind.
type usage map[string]string

func (v *validator) validateNodePools() {
	used := usage{}
	controlPlanes, workers, unknownRole := 0, 0, false
	for i, pool := range v.NodePools {
		path := fmt.Sprintf("nodePools[%d]", i)
		v.label(path+".name", pool.Name)
		v.unique(used, "pool", path+".name", pool.Name)
		v.size(path, pool)
		v.pool(path, pool)
		v.labels(path, pool.Labels, pool.Taints)
		if len(pool.Nodes) == 0 {
			v.found(path+".nodes", "declare a node, or remove the pool", "is empty")
		}
		unknownRole = unknownRole || pool.Role == ""
		if pool.Role == RoleControlPlane {
			controlPlanes += len(pool.Nodes)
		} else {
			workers += len(pool.Nodes)
		}
		for j, node := range pool.Nodes {
			v.node(fmt.Sprintf("%s.nodes[%d]", path, j), node, used)
		}
	}
	switch {
	case unknownRole:
	case controlPlanes == 0:
		v.found("nodePools", fmt.Sprintf("declare a pool of role %s with one node, or three", RoleControlPlane), "have no control plane")
	case controlPlanes%2 == 0:
		v.found("nodePools", fmt.Sprintf("declare %d or %d", controlPlanes-1, controlPlanes+1),
			"%d control planes tolerate no more failures than %d would", controlPlanes, controlPlanes-1)
	case controlPlanes > maxControlPlanes:
		v.found("nodePools", "declare 3, 5 or 7, and the others as workers",
			"%d control planes slow each other down: every write waits for a majority of them", controlPlanes)
	case workers == 0 && !v.Kubernetes.AllowSchedulingOnControlPlanes:
		v.found("nodePools", "declare a worker, or set kubernetes.allowSchedulingOnControlPlanes: true",
			"have no worker, so that nothing would run Flux and the workloads")
	case workers == 0 && v.WorkerPolicy.Join == JoinAfterGate:
		v.found("workers.join", "declare a worker, or remove the key", "%s is for workers, and there is none", v.WorkerPolicy.Join)
	default:
		v.schedulable()
	}
	v.validateSpread()
}

// schedulable checks that some machine takes ordinary pods.
func (v *validator) schedulable() {
	nodes := v.Workers()
	if v.Kubernetes.AllowSchedulingOnControlPlanes {
		nodes = v.Nodes()
	}
	for _, node := range nodes {
		if !slices.ContainsFunc(slices.Collect(maps.Values(node.Taints)), keepsPodsAway) {
			return
		}
	}
	v.found("nodePools", "declare a machine without such a taint",
		"taint every machine that takes pods NoSchedule or NoExecute, so that nothing would run Flux and the workloads")
}

// keepsPodsAway reports whether a taint, VALUE:EFFECT or EFFECT, keeps pods from a node that do not tolerate it.
func keepsPodsAway(taint string) bool {
	effect := taint[strings.LastIndex(taint, ":")+1:]
	return effect == "NoSchedule" || effect == "NoExecute"
}

// pool checks what a pool has for itself. What it takes over from proxmox is checked there.
func (v *validator) pool(path string, pool NodePool) {
	p := v.Proxmox
	if !slices.Equal(pool.Hosts, p.Nodes) {
		v.hosts(path+".hosts", pool.Hosts)
	}
	if pool.Datastore != p.Datastores.Disks {
		v.shape(path+".datastore", pool.Datastore, storageForm, "the name of a Proxmox storage", "local-lvm")
	}
	if pool.Bridge != p.Bridge {
		v.bridge(path+".bridge", pool.Bridge)
	}
	if pool.VLAN != nil && *pool.VLAN != p.VLAN {
		v.vlan(path+".vlan", *pool.VLAN)
	}
	v.tags(path+".tags", pool.Tags)
	v.dataDisks(path+".dataDisks", pool)
}

func (v *validator) hosts(path string, hosts []string) {
	if len(hosts) == 0 {
		v.found(path, "name a Proxmox node, or remove the key for all of proxmox.nodes", "is empty")
	}
	for i, host := range hosts {
		v.host(fmt.Sprintf("%s[%d]", path, i), host)
	}
	v.distinct(path, hosts)
}

func (v *validator) host(path, host string) {
	if host != "" && len(v.Proxmox.Nodes) > 0 && !slices.Contains(v.Proxmox.Nodes, host) {
		v.found(path, oneOf(host, v.Proxmox.Nodes), "%s is not among proxmox.nodes", host)
	}
}

func (v *validator) size(path string, pool NodePool) {
	if pool.Cores < 1 || pool.Cores > maxCores {
		v.found(path+".cores", fmt.Sprintf("write a number from 1 to %d", maxCores), "%d is not a number of cores", pool.Cores)
	}
	memory := minWorkerMemory
	if pool.Role == RoleControlPlane {
		memory = minControlPlaneMemory
	}
	if pool.Memory < memory {
		v.found(path+".memory", "write at least "+memory.String(), "%s is too little for Talos on a %s", pool.Memory, pool.Role)
	}
	v.wholeGiB(path+".disk", pool.Disk, minDisk, "for Talos")
}

// labels checks the labels and taints of a pool or a machine.
func (v *validator) labels(path string, given, taints map[string]string) {
	for _, key := range sorted(given) {
		at := entry(path+".labels", key)
		if isReservedLabel(key) {
			v.found(at, "pick another prefix", "is a label that Kubernetes does not let a node give itself")
		} else if err := labels.Validate(map[string]string{key: given[key]}); err != nil {
			v.found(at, "write a Kubernetes label: [PREFIX/]NAME: VALUE", "%q is not a label's value, or the key not its name", given[key])
		}
	}
	for _, key := range sorted(taints) {
		if err := labels.ValidateTaints(map[string]string{key: taints[key]}); err != nil {
			v.found(entry(path+".taints", key), "write a Kubernetes taint, [PREFIX/]NAME: [VALUE:]EFFECT, with an effect of NoSchedule, PreferNoSchedule or NoExecute",
				"%q is not a taint", taints[key])
		}
	}
}

func (v *validator) node(path string, node Node, used usage) {
	v.label(path+".name", node.Name)
	v.unique(used, "node", path+".name", node.Name)

	if node.pinned { // otherwise it is one of the pool's, which are checked there
		v.host(path+".host", node.Host)
	}

	if node.VMID < minVMID || node.VMID > maxVMID {
		v.found(path+".vmId", fmt.Sprintf("write a number from %d to %d", minVMID, maxVMID), "%d is not a VM id", node.VMID)
	} else {
		v.unique(used, "vmId", path+".vmId", strconv.Itoa(node.VMID))
	}

	v.mac(path+".mac", node.MAC, used)
	v.outsidePool(path+".address", node.Address)
	v.address(path+".address", node.Address)
	v.nodeAddress6(path+".address6", node.Address6)
	v.labels(path, node.Labels, node.Taints)
	v.patches(path+".patches", node.Patches)
}

func (v *validator) mac(path string, mac MAC, used usage) {
	switch {
	case mac == "":
	case mac.isGroup():
		v.found(path, "write a unicast one, such as BC:24:11:00:01:0B", "%s is a multicast address", mac)
	case mac == "00:00:00:00:00:00":
		v.found(path, "write one, such as BC:24:11:00:01:0B", "%s is no machine's address", mac)
	default:
		v.unique(used, "mac", path, string(mac))
	}
}

// unique reports a value that another path of the same kind has.
func (v *validator) unique(used usage, kind, path, value string) {
	if value == "" {
		return
	}
	if first, taken := used[kind+" "+value]; taken {
		v.found(path, "pick another", "%s is taken by %s", value, first)
		return
	}
	used[kind+" "+value] = path
}

// isReservedLabel reports whether a node may not give itself the label, though its form is right.
func isReservedLabel(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	within := func(domain string) bool { return prefix == domain || strings.HasSuffix(prefix, "."+domain) }
	if !within("kubernetes.io") && !within("k8s.io") {
		return false
	}
	return !slices.Contains(nodeLabels, key) && !slices.ContainsFunc(nodeLabelPrefixes, within)
}

// sorted returns a map's keys in order, so that problems are.
func sorted[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
