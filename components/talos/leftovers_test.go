package talos

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/components/talos/reclaim"
	"github.com/slipway-platform/slipway/internal/step"
)

func TestLeftovers_AreRemovedAfterTheMachinesAndImagesInTheState(t *testing.T) {
	r := up(t)
	left := r.Resource(t, "infra-leftovers")
	for _, before := range append(r.OfType(typeVM), r.OfType(typeISO)...) {
		assert.True(t, r.After(before, left), "%s is created later, and deleted before", before.Name)
	}
}

func TestLeftovers_AreRemovedByADestroyAndAtNoOtherTime(t *testing.T) {
	left := up(t).Resource(t, "infra-leftovers")
	assert.Equal(t, step.Program+" leftovers", left.Input("delete"))
	assert.Nil(t, left.Input("create"))
	assert.Nil(t, left.Input("update"))
	assert.Nil(t, left.Input("triggers"), "their change would replace it, and a replacement deletes it")
	assert.Empty(t, left.DeletedWith)
}

func TestLeftovers_AreLookedForUnderTheNamesThatAreCreated(t *testing.T) {
	r := up(t)
	left := r.Resource(t, "infra-leftovers")
	assert.True(t, left.SecretInput("stdin"))
	var spec reclaim.Leftovers
	require.NoError(t, json.Unmarshal([]byte(left.Input("stdin").(string)), &spec))
	require.Len(t, spec.VMs, len(r.OfType(typeVM)))
	for i, vm := range spec.VMs {
		made := r.Resource(t, "infra-"+vm.Name+"-vm")
		assert.Equal(t, made.Input("description"), vm.Description, i)
		assert.EqualValues(t, made.Input("vmId"), vm.ID)
		assert.Equal(t, made.Input("nodeName"), vm.Host)
	}
	require.Len(t, spec.Images, len(r.OfType(typeISO)))
	for i, image := range r.OfType(typeISO) {
		assert.Contains(t, spec.Images, reclaim.Image{
			Host: image.Input("nodeName").(string), Storage: image.Input("datastoreId").(string), File: image.Input("fileName").(string),
		}, i)
	}
}
