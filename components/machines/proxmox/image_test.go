package proxmox

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
)

func TestImages_DownloadTheImageOncePerHost(t *testing.T) {
	r := up(t)
	images := r.OfType(typeISO)
	hosts := map[any]bool{}
	for _, image := range images {
		hosts[image.Input("nodeName")] = true
		assert.Equal(t, fmt.Sprintf("talos-infra-schema-v1.14.6-infra-%s-nocloud-amd64.iso", image.Input("nodeName")), image.Input("fileName"))
		assert.Equal(t, "https://factory.talos.dev/image/"+schematicID+"/v1.14.6/nocloud-amd64.iso", image.Input("url"))
		assert.Equal(t, "iso", image.Input("contentType"))
		assert.Equal(t, false, image.Input("overwrite"), "nothing is compared on later runs")
		assert.Equal(t, true, image.Input("overwriteUnmanaged"), "the file of an interrupted run is replaced")
		assert.ElementsMatch(t, []string{"url", "fileName"}, image.IgnoreChanges, "a patch release downloads nothing")
	}
	assert.Equal(t, map[any]bool{"pve1": true, "pve2": true, "pve3": true}, hosts)
	assert.Len(t, images, 3)
}

func TestImages_DownloadTheImageOnceToASharedStorage(t *testing.T) {
	r := up(t, func(c *cluster.Cluster) { c.Proxmox.Datastores.ISO, c.Proxmox.Datastores.ISOShared = "nfs-iso", true })
	image := r.Only(t, typeISO)
	assert.Equal(t, "talos-infra-schema-v1.14.6-infra-nocloud-amd64.iso", image.Input("fileName"))
	assert.ElementsMatch(t, []string{"url", "fileName", "nodeName"}, image.IgnoreChanges, "another first machine does not replace it")
	for _, vm := range r.OfType(typeVM) {
		assert.Contains(t, vm.PropertyDependencies["cdrom"], image.URN, vm.Name)
	}
}

// The host may be down, so that no other run could go on.
func TestImages_NoneIsDownloadedForMachinesThatAreAllLeftOut(t *testing.T) {
	left := func(c *cluster.Cluster) {
		for _, node := range c.Machines() {
			if node.Host == "pve2" {
				c.Lifecycle.Skip = append(c.Lifecycle.Skip, cluster.SkippedNode{Name: node.Name, Reason: "pve2 waits for a new board"})
			}
		}
	}
	for _, image := range up(t, left).OfType(typeISO) {
		assert.NotEqual(t, "pve2", image.Input("nodeName"))
	}
	shared := up(t, func(c *cluster.Cluster) {
		c.Proxmox.Datastores.ISOShared = true
		c.Lifecycle.Skip = cluster.SkippedNodes{{Name: c.Machines()[0].Name, Reason: "pve1 waits for a new board"}}
	}).Only(t, typeISO)
	assert.Equal(t, "pve2", shared.Input("nodeName"), "any host may download what all read")
}

// trigger returns what replaces the images of a cluster when it changes.
func trigger(t *testing.T, changes ...func(*cluster.Cluster)) string {
	t.Helper()
	triggers := map[string]bool{}
	for _, image := range up(t, changes...).OfType(typeISO) {
		triggers[image.RPC.GetReplacementTrigger().String()] = true
	}
	assert.Len(t, triggers, 1, "the images of all hosts are the same")
	return slices.Collect(maps.Keys(triggers))[0]
}

func TestImages_FollowTheMinorReleaseOfTalos(t *testing.T) {
	version := func(version string) string {
		return trigger(t, func(c *cluster.Cluster) { c.Talos.Version = version })
	}
	assert.Contains(t, version("v1.13.9"), "v1.13 ")
	assert.Equal(t, version("v1.13.9"), version("v1.13.10"), "the maintenance mode is that of the minor release")
	assert.NotEqual(t, version("v1.13.9"), version("v1.14.0"))
}

func TestImages_FollowTheExtensionsAndTheKindOfImage(t *testing.T) {
	assert.Contains(t, trigger(t), schematicID)
	assert.NotEqual(t, trigger(t), trigger(t, func(c *cluster.Cluster) { c.Talos.DiskEncryption = cluster.DiskEncryptionTPM }))
}

func TestImages_AreOfBothKindsWhileSomeMachinesHaveNoSecureBootYet(t *testing.T) {
	files := func(shared bool) map[string]any {
		files := map[string]any{}
		for _, image := range up(t, func(c *cluster.Cluster) {
			c.Talos.DiskEncryption, c.Proxmox.Datastores.ISOShared = cluster.DiskEncryptionTPM, shared
			c.NodePools[0].Nodes[1].DiskEncryption = cluster.DiskEncryptionNodeID
		}).OfType(typeISO) {
			files[image.Name] = image.Input("fileName")
		}
		return files
	}
	const name = "talos-infra-schema-v1.14.6-infra-"
	assert.Equal(t, map[string]any{
		"infra-pve1-iso": name + "pve1-nocloud-amd64-secureboot.iso", "infra-pve2-iso": name + "pve2-nocloud-amd64-secureboot.iso",
		"infra-pve3-iso":               name + "pve3-nocloud-amd64-secureboot.iso",
		"infra-pve2-iso-nocloud-amd64": name + "pve2-nocloud-amd64-other.iso",
	}, files(false))
	assert.Equal(t, map[string]any{
		"infra-iso": name + "nocloud-amd64-secureboot.iso", "infra-iso-nocloud-amd64": name + "nocloud-amd64-other.iso",
	}, files(true))
}

// The machines that run have the file of the earlier image in their CD drives. Without it, Proxmox VE does not start them.
func TestImages_AnImageThatIsReplacedIsKeptForTheMachinesThatHaveIt(t *testing.T) {
	r := up(t)
	for _, image := range r.OfType(typeISO) {
		assert.True(t, image.RetainOnDelete, image.Name)
		assert.False(t, image.RPC.GetDeleteBeforeReplace(), image.Name)
	}
}

func TestImages_AnotherMinorReleaseChangesNothingOfMachinesThatExist(t *testing.T) {
	before, after := up(t), up(t, func(c *cluster.Cluster) { c.Talos.Version = "v1.13.0" })
	require.NotEmpty(t, after.OfType(typeVM))
	for _, vm := range after.OfType(typeVM) {
		was := before.Resource(t, vm.Name)
		assert.Contains(t, vm.IgnoreChanges, "cdrom.fileId", vm.Name)
		delete(vm.Inputs, "cdrom") // its interface is ignored, too
		delete(was.Inputs, "cdrom")
		assert.Equal(t, was.Inputs, vm.Inputs, vm.Name)
		assert.Equal(t, was.RPC.GetReplacementTrigger().String(), vm.RPC.GetReplacementTrigger().String(), vm.Name)
		assert.Empty(t, vm.RPC.GetReplaceOnChanges(), vm.Name)
	}
}
