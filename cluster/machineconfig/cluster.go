// Package machineconfig renders the machine configuration of Talos nodes from a cluster.Cluster that Complete has found nothing wrong
// with. It renders patches to the configuration that Talos generates from the machine secrets, so it needs none of these secrets. It
// imports no Pulumi: the program renders and validates before it registers anything.
//
// # What the user's patches may set
//
// CheckPatches assembles the configuration without the user's patches and with all of them, and compares the results. No patch may change
// or remove what Slipway renders, or what owned.txt names, because Slipway's gates rely on both; nor may a patch add what takes effect
// instead. It makes no difference how a patch is written: by deletion, by another name of the same setting, or by another document. Talos's
// own validation decides the rest.
package machineconfig

import "github.com/slipway-platform/slipway/cluster"

// model is a cluster whose machines are configured.
type model struct{ cluster.Cluster }

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
	var patches []userPatch
	add := func(scope scope, path string, secret bool, list []cluster.Patch) {
		for i, text := range list {
			one := userPatch{path: cluster.ItemPath(path, i), text: text.String(), secret: secret, scope: scope}
			if one.id = one.path; scope == ofNode {
				one.id = string(n.Role) + " " + one.text
			}
			patches = append(patches, one)
		}
	}
	const plain, secret = "talos.patches", cluster.SecretPatchesKey
	add(ofAll, plain+".all", false, c.Talos.Patches.All)
	add(ofAll, secret+".all", true, c.SecretPatches.All)
	if n.Role == cluster.ControlPlane {
		add(ofControlPlanes, plain+".controlPlanes", false, c.Talos.Patches.ControlPlanes)
		add(ofControlPlanes, secret+".controlPlanes", true, c.SecretPatches.ControlPlanes)
	} else {
		add(ofWorkers, plain+".workers", false, c.Talos.Patches.Workers)
		add(ofWorkers, secret+".workers", true, c.SecretPatches.Workers)
	}
	add(ofNode, n.Path+".patches", false, n.Patches)
	return patches
}

// scope tells which nodes a patch is for. Scopes are in the order of application.
type scope int

const (
	ofAll scope = iota
	ofControlPlanes
	ofWorkers
	ofNode
)

// userPatch is one of the user's patches.
type userPatch struct {
	path   string // the key that declares it, such as talos.patches.all[0]
	text   string // YAML or JSON
	secret bool   // the text is a secret
	scope  scope
	id     string // the same for all nodes of a role whose own patches have the same text
}
