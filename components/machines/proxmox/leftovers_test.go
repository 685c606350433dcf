package proxmox

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/components/machines/proxmox/reclaim"
	"github.com/slipway-platform/slipway/internal/probe"
)

var removals = []string{"infra-leftovers", "infra-leftover-vms"}

func TestLeftovers_AreRemovedAfterTheMachinesInTheState(t *testing.T) {
	r := up(t)
	for _, name := range removals {
		for _, vm := range r.OfType(typeVM) {
			assert.True(t, r.After(vm, r.Resource(t, name)), "%s is created later, and deleted before %s", vm.Name, name)
		}
	}
}

// A machine that was never started boots its image, before it is known to hold no data.
func TestLeftovers_AreRemovedBeforeTheImagesFromWhichTheyBoot(t *testing.T) {
	r := up(t)
	vms, images := r.Resource(t, "infra-leftover-vms"), r.Resource(t, "infra-leftovers")
	for _, image := range r.OfType(typeISO) {
		assert.True(t, r.After(vms, image), "%s is deleted after the machines", image.Name)
		assert.True(t, r.After(image, images), "%s is deleted before what is in no state", image.Name)
	}
}

func TestLeftovers_AreRemovedByADestroyAndAtNoOtherTime(t *testing.T) {
	r := up(t)
	for _, name := range removals {
		left := r.Resource(t, name)
		assert.Equal(t, probe.Program+" leftovers", left.Input("delete"), name)
		assert.Nil(t, left.Input("create"), name)
		assert.Nil(t, left.Input("update"), name)
		assert.Nil(t, left.Input("triggers"), "%s: their change would replace it, and a replacement deletes it", name)
		assert.Empty(t, left.DeletedWith, name)
	}
}

func TestLeftovers_AreLookedForUnderTheNamesThatAreCreated(t *testing.T) {
	r := up(t)
	spec := func(name string) (spec reclaim.Leftovers) {
		left := r.Resource(t, name)
		assert.True(t, left.SecretInput("stdin"))
		require.NoError(t, json.Unmarshal([]byte(left.Input("stdin").(string)), &spec))
		require.NoError(t, spec.Validate())
		return spec
	}
	vms, images := spec("infra-leftover-vms").VMs, spec("infra-leftovers").Images
	require.Len(t, vms, len(r.OfType(typeVM)))
	for i, vm := range vms {
		made := r.Resource(t, "infra-"+vm.Name+"-vm")
		assert.Equal(t, made.Input("description"), vm.Description, i)
		assert.EqualValues(t, made.Input("vmId"), vm.ID)
		assert.Equal(t, made.Input("nodeName"), vm.Host)
	}
	require.Len(t, images, len(r.OfType(typeISO)))
	assert.Equal(t, declared(t).Identity.Name, spec("infra-leftovers").ImagesOf, "those of earlier releases, too")
	assert.Empty(t, spec("infra-leftover-vms").ImagesOf, "machines that are left may boot from one")
	for i, image := range r.OfType(typeISO) {
		assert.Contains(t, images, reclaim.Image{
			Host: image.Input("nodeName").(string), Storage: image.Input("datastoreId").(string), File: image.Input("fileName").(string),
		}, i)
	}
}
