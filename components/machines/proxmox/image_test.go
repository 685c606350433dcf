package proxmox

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/cluster"
)

func TestImages_DownloadTheImageOncePerHost(t *testing.T) {
	r := up(t)
	images := r.OfType(typeISO)
	hosts := map[any]bool{}
	for _, image := range images {
		hosts[image.Input("nodeName")] = true
		assert.Equal(t, fmt.Sprintf("talos-infra-schema-v1.12.7-infra-%s-nocloud-amd64.iso", image.Input("nodeName")), image.Input("fileName"))
		assert.Equal(t, "https://factory.talos.dev/image/"+schematicID+"/v1.12.7/nocloud-amd64.iso", image.Input("url"))
		assert.Equal(t, "iso", image.Input("contentType"))
		assert.Equal(t, false, image.Input("overwrite"), "nothing is compared on later runs")
		assert.Equal(t, true, image.Input("overwriteUnmanaged"), "the file of an interrupted run is replaced")
		assert.ElementsMatch(t, []string{"url", "fileName"}, image.IgnoreChanges)
	}
	assert.Equal(t, map[any]bool{"pve1": true, "pve2": true, "pve3": true}, hosts)
	assert.Len(t, images, 3)
}

func TestImages_DownloadTheImageOnceToASharedStorage(t *testing.T) {
	r := up(t, func(c *cluster.Cluster) { c.Proxmox.Datastores.ISO, c.Proxmox.Datastores.ISOShared = "nfs-iso", true })
	image := r.Only(t, typeISO)
	assert.Equal(t, "talos-infra-schema-v1.12.7-infra-nocloud-amd64.iso", image.Input("fileName"))
	assert.ElementsMatch(t, []string{"url", "fileName", "nodeName"}, image.IgnoreChanges, "another first machine does not replace it")
	for _, vm := range r.OfType(typeVM) {
		assert.Contains(t, vm.PropertyDependencies["cdrom"], image.URN, vm.Name)
	}
}
