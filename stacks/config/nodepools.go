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
		v.labels(path, pool)
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
	case workers == 0 && !v.Kubernetes.AllowSchedulingOnControlPlanes:
		v.found("nodePools", "declare a worker, or set kubernetes.allowSchedulingOnControlPlanes: true",
			"have no worker, so that nothing would run Flux and the workloads")
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
	if pool.Disk < minDisk {
		v.found(path+".disk", "write at least "+minDisk.String(), "%s is too little for Talos", pool.Disk)
	} else if pool.Disk%GiB != 0 {
		v.found(path+".disk", fmt.Sprintf("did you mean %dGiB?", (pool.Disk+GiB-1)/GiB), "%s is not a whole number of GiB", pool.Disk)
	}
}

func (v *validator) labels(path string, pool NodePool) {
	for _, key := range sorted(pool.Labels) {
		at := entry(path+".labels", key)
		if isReservedLabel(key) {
			v.found(at, "pick another prefix", "is a label that Kubernetes does not let a node give itself")
		} else if err := labels.Validate(map[string]string{key: pool.Labels[key]}); err != nil {
			v.found(at, "write a Kubernetes label: [PREFIX/]NAME: VALUE", "%q is not a label's value, or the key not its name", pool.Labels[key])
		}
	}
	for _, key := range sorted(pool.Taints) {
		if err := labels.ValidateTaints(map[string]string{key: pool.Taints[key]}); err != nil {
			v.found(entry(path+".taints", key), "write a Kubernetes taint, [PREFIX/]NAME: [VALUE:]EFFECT, with an effect of NoSchedule, PreferNoSchedule or NoExecute",
				"%q is not a taint", pool.Taints[key])
		}
	}
}

func (v *validator) node(path string, node Node, used usage) {
	v.label(path+".name", node.Name)
	v.unique(used, "node", path+".name", node.Name)

	if node.Host != "" && len(v.Proxmox.Nodes) > 0 && !slices.Contains(v.Proxmox.Nodes, node.Host) {
		v.found(path+".host", oneOf(node.Host, v.Proxmox.Nodes), "%s is not among proxmox.nodes", node.Host)
	}

	if node.VMID < minVMID || node.VMID > maxVMID {
		v.found(path+".vmId", fmt.Sprintf("write a number from %d to %d", minVMID, maxVMID), "%d is not a VM id", node.VMID)
	} else {
		v.unique(used, "vmId", path+".vmId", strconv.Itoa(node.VMID))
	}

	v.mac(path+".mac", node.MAC, used)
	v.outsidePool(path+".address", node.Address)
	v.address(path+".address", node.Address)
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
