// Package machineconfig renders the machine configuration of Talos nodes from a cluster.Cluster that Complete has found nothing wrong
// with. It renders patches to the configuration that Talos generates from the machine secrets, so it needs none of these secrets. It
// imports no Pulumi: the program renders and validates before it registers anything.
//
// # What the user's patches may set
//
// CheckPatches assembles the configuration without the user's patches, and again after each of them, and compares. The rule:
//
//   - What Slipway or Talos has set stays. A patch may not change or remove a value that is there without the user's patches, except a
//     few defaults of Talos that nothing relies on, such as the audit policy.
//   - A document that Slipway renders, such as HostnameConfig, stays as a whole: a patch may add nothing to it.
//   - A patch may add what the table allowances names: further kernel parameters, labels, mirrors, files, mounts, flags that only tune
//     a component, links, volumes and so on. It may add nothing else. A list may get further items.
//   - Some additions are checked for what they do. A volume must be on a disk that the stack does not declare. A link must leave the
//     machine's network device and the cluster's networks alone. A mount must not hide a directory that Talos fills.
//
// What is compared is the result. How a patch is written makes no difference: by deletion, by another name of the same setting, or by
// another document. The flags of talos.kubelet.extraArgs are those that a patch may add.
package machineconfig

import "github.com/slipway-platform/slipway/cluster"

// model is a cluster, and the inline manifests of its control planes.
type model struct {
	cluster.Cluster

	InlineManifests []string // names of the inline manifests that the program adds
}

// modelOf returns the model of a cluster. In mode inline, the program adds Cilium's manifests.
func modelOf(c *cluster.Cluster) model {
	m := model{Cluster: *c}
	if c.Cilium.Inline() {
		m.InlineManifests = []string{CiliumManifest}
	}
	return m
}

// CiliumManifest is the name of the inline manifest that holds Cilium's objects.
const CiliumManifest = "cilium"

// installDisk returns the device of the system disk. With several disks it is the name by the place on the bus, because the kernel
// names the disks sda and sdb in the order in which they answer.
func (c model) installDisk(n cluster.Machine) string {
	if c.Talos.InstallDisk == cluster.FirstDisk && len(n.DataDisks) > 0 {
		return cluster.DiskPath(0)
	}
	return c.Talos.InstallDisk
}

// userPatches are the user's patches for a node, in the order of application.
func (c model) userPatches(n cluster.Machine) []userPatch {
	return append(c.sharedPatches(n.Role), ownPatches(n)...)
}

// sharedPatches are those of the user's patches that the cluster declares for a role, in the order of application.
func (c model) sharedPatches(role cluster.Role) []userPatch {
	var patches []userPatch
	add := func(path string, secret bool, list []cluster.Patch) {
		for i, text := range list {
			patches = append(patches, userPatch{path: cluster.ItemPath(path, i), text: text.String(), secret: secret})
		}
	}
	add(plainPatches+".all", false, c.Talos.Patches.All)
	add(cluster.SecretPatchesKey+".all", true, c.SecretPatches.All)
	if role == cluster.ControlPlane {
		add(plainPatches+".controlPlanes", false, c.Talos.Patches.ControlPlanes)
		add(cluster.SecretPatchesKey+".controlPlanes", true, c.SecretPatches.ControlPlanes)
	} else {
		add(plainPatches+".workers", false, c.Talos.Patches.Workers)
		add(cluster.SecretPatchesKey+".workers", true, c.SecretPatches.Workers)
	}
	return patches
}

// ownPatches are those of the user's patches that a node declares.
func ownPatches(n cluster.Machine) []userPatch {
	var patches []userPatch
	for i, text := range n.Patches {
		patches = append(patches, userPatch{path: cluster.ItemPath(n.Path+".patches", i), text: text.String()})
	}
	return patches
}

// plainPatches is the section of the stack that declares patches without secrets.
const plainPatches = "talos.patches"

// userPatch is one of the user's patches.
type userPatch struct {
	path   string // the key that declares it, such as talos.patches.all[0]
	text   string // YAML or JSON
	secret bool   // the text is a secret
}
